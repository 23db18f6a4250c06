SELECT id, tenant, envelope, meta_schema, meta FROM dlo_envelope ORDER BY id
