SELECT generation, destination FROM (
    SELECT generation, destination FROM dlo_history WHERE tenant = ?1 AND entry = ?2
    UNION ALL
    SELECT generation, destination FROM dlo_dead_letter WHERE tenant = ?1 AND entry = ?2
)
ORDER BY generation DESC LIMIT 1
