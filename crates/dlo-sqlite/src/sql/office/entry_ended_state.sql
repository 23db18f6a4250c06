SELECT state
FROM (
    SELECT generation, state FROM dlo_history WHERE tenant = ?1 AND entry = ?2
    UNION ALL
    SELECT generation, 'dead_lettered' FROM dlo_dead_letter WHERE tenant = ?1 AND entry = ?2
)
ORDER BY generation DESC
LIMIT 1
