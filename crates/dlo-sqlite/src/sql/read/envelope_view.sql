SELECT envelope, meta_schema, meta, payload_size, payload_sha256 FROM dlo_envelope WHERE id = ?1 AND tenant = ?2
