-- Redriven dead letters whose next generation is nowhere: (tenant, dead letter, entry, generation).
SELECT dead.tenant, dead.id, dead.entry, dead.generation
FROM dlo_dead_letter AS dead
WHERE dead.state = 'redriven'
  AND NOT EXISTS (SELECT 1 FROM dlo_entry AS e
                  WHERE e.tenant = dead.tenant AND e.entry = dead.entry AND e.generation > dead.generation)
  AND NOT EXISTS (SELECT 1 FROM dlo_history AS h
                  WHERE h.tenant = dead.tenant AND h.entry = dead.entry AND h.generation > dead.generation)
  AND NOT EXISTS (SELECT 1 FROM dlo_dead_letter AS d
                  WHERE d.tenant = dead.tenant AND d.entry = dead.entry AND d.generation > dead.generation)
LIMIT ?1
