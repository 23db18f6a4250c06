-- Rows whose envelope does not exist: (tenant, entry, generation, place).
SELECT live.tenant, live.entry, live.generation, 'live'
FROM dlo_entry AS live
WHERE NOT EXISTS (SELECT 1 FROM dlo_envelope AS v WHERE v.id = live.envelope_ref AND v.tenant = live.tenant)
UNION ALL
SELECT dead.tenant, dead.entry, dead.generation, 'dead_lettered'
FROM dlo_dead_letter AS dead
WHERE NOT EXISTS (SELECT 1 FROM dlo_envelope AS v WHERE v.id = dead.envelope_ref AND v.tenant = dead.tenant)
LIMIT ?1
