-- Lineages whose operation key changed: (tenant, entry, generation, later generation).
WITH later (tenant, entry, generation, operation_key) AS (
    SELECT tenant, entry, generation, operation_key FROM dlo_entry
    UNION ALL
    SELECT tenant, entry, generation, operation_key FROM dlo_history
    UNION ALL
    SELECT tenant, entry, generation, operation_key FROM dlo_dead_letter
)
SELECT dead.tenant, dead.entry, dead.generation, later.generation
FROM dlo_dead_letter AS dead
CROSS JOIN later ON later.tenant = dead.tenant AND later.entry = dead.entry AND later.generation > dead.generation
WHERE later.operation_key <> dead.operation_key
LIMIT ?1
