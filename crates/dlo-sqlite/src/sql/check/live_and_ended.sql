-- Generations that live although the same or a later one of their entry has ended.
-- (tenant, entry, live generation, ended generation, ended state)
SELECT live.tenant, live.entry, live.generation, ended.generation, ended.state
FROM dlo_entry AS live
CROSS JOIN dlo_history AS ended
  ON ended.tenant = live.tenant AND ended.entry = live.entry AND ended.generation >= live.generation
UNION ALL
SELECT live.tenant, live.entry, live.generation, ended.generation, 'dead_lettered'
FROM dlo_dead_letter AS ended
CROSS JOIN dlo_entry AS live
  ON live.tenant = ended.tenant AND live.entry = ended.entry AND live.generation <= ended.generation
LIMIT ?1
