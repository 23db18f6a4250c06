-- Entries that were delivered or cancelled and went on afterwards: nothing follows either.
-- (tenant, entry, generation, state, later generation)
SELECT past.tenant, past.entry, past.generation, past.state, dead.generation
FROM dlo_dead_letter AS dead
CROSS JOIN dlo_history AS past
  ON past.tenant = dead.tenant AND past.entry = dead.entry AND past.generation < dead.generation
LIMIT ?1
