SELECT class, reason, provider_code, text
FROM dlo_attempt
WHERE tenant = ?1 AND entry = ?2 AND generation = ?3 AND class IS NOT NULL
ORDER BY number DESC
LIMIT 1
