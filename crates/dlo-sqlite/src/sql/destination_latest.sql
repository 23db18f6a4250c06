SELECT version, schema, spec, applied FROM dlo_destination
WHERE tenant = ?1 AND name = ?2
ORDER BY version DESC LIMIT 1
