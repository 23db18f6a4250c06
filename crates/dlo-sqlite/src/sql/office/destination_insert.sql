INSERT INTO dlo_destination (tenant, name, version, schema, spec, applied) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
