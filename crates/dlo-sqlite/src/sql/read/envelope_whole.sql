SELECT envelope, meta_schema, meta, payload_form, payload_sha256, key_id, payload
FROM dlo_envelope
WHERE id = ?1 AND tenant = ?2
