SELECT seq, tenant, redrive, dead_letter, result, code, entry, generation, at, audit
FROM dlo_redrive_item
WHERE seq < ?1
ORDER BY seq DESC
