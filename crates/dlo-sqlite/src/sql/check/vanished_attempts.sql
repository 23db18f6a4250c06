-- Entries that have recorded attempts and are nowhere: (tenant, entry).
SELECT DISTINCT seen.tenant, seen.entry
FROM dlo_attempt AS seen
WHERE NOT EXISTS (SELECT 1 FROM dlo_entry AS e WHERE e.tenant = seen.tenant AND e.entry = seen.entry)
  AND NOT EXISTS (SELECT 1 FROM dlo_history AS h WHERE h.tenant = seen.tenant AND h.entry = seen.entry)
  AND NOT EXISTS (SELECT 1 FROM dlo_dead_letter AS d WHERE d.tenant = seen.tenant AND d.entry = seen.entry)
LIMIT ?1
