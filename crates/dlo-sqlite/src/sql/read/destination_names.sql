SELECT DISTINCT tenant, name
FROM dlo_destination
WHERE (tenant, name) > (?2, ?3) AND (?1 IS NULL OR tenant = ?1)
ORDER BY tenant, name
LIMIT ?4
