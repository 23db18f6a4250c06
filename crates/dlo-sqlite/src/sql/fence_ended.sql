SELECT fence_token, fence_version FROM dlo_history WHERE tenant = ?1 AND entry = ?2 AND generation = ?3
UNION ALL
SELECT fence_token, fence_version FROM dlo_dead_letter WHERE tenant = ?1 AND entry = ?2 AND generation = ?3
LIMIT 1
