-- Generations that ended both in history and in quarantine: (tenant, entry, generation, state in history).
SELECT dead.tenant, dead.entry, dead.generation, past.state
FROM dlo_dead_letter AS dead
CROSS JOIN dlo_history AS past
  ON past.tenant = dead.tenant AND past.entry = dead.entry AND past.generation = dead.generation
LIMIT ?1
