-- Lineages whose counters are lower in a later generation: (tenant, entry, generation, later generation).
WITH later (tenant, entry, generation, claims, failed, crashed, deferred, interrupted) AS (
    SELECT tenant, entry, generation, claims, failed, crashed, deferred, interrupted FROM dlo_entry
    UNION ALL
    SELECT tenant, entry, generation, claims, failed, crashed, deferred, interrupted FROM dlo_history
    UNION ALL
    SELECT tenant, entry, generation, claims, failed, crashed, deferred, interrupted FROM dlo_dead_letter
)
SELECT dead.tenant, dead.entry, dead.generation, later.generation
FROM dlo_dead_letter AS dead
CROSS JOIN later ON later.tenant = dead.tenant AND later.entry = dead.entry AND later.generation > dead.generation
WHERE later.claims < dead.claims OR later.failed < dead.failed OR later.crashed < dead.crashed
   OR later.deferred < dead.deferred OR later.interrupted < dead.interrupted
LIMIT ?1
