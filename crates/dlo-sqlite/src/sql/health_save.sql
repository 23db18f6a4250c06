INSERT INTO dlo_health (tenant, destination, version, schema, body) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (tenant, destination) DO UPDATE
SET version = excluded.version, schema = excluded.schema, body = excluded.body
