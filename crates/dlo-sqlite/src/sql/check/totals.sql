-- Totals that differ from what they count: (tenant, destination, name, class, reason, stored, counted).
WITH counted (tenant, destination, name, class, reason, value) AS (
    SELECT tenant, destination, 'live', '', '', count(*) FROM dlo_entry GROUP BY tenant, destination
    UNION ALL
    SELECT tenant, destination, 'manual_review', '', '', count(*)
    FROM dlo_entry WHERE manual_review = 1 GROUP BY tenant, destination
    UNION ALL
    SELECT tenant, destination, 'dead_letters', class, reason, count(*)
    FROM dlo_dead_letter GROUP BY tenant, destination, class, reason
    UNION ALL
    SELECT tenant, destination, 'dead_letters_open', '', '', count(*)
    FROM dlo_dead_letter WHERE state = 'open' GROUP BY tenant, destination
),
stored (tenant, destination, name, class, reason, value) AS (
    SELECT tenant, destination, name, class, reason, value
    FROM dlo_total WHERE name IN ('live', 'manual_review', 'dead_letters', 'dead_letters_open')
),
both (tenant, destination, name, class, reason, stored, counted) AS (
    SELECT tenant, destination, name, class, reason, value, 0 FROM stored
    UNION ALL
    SELECT tenant, destination, name, class, reason, 0, value FROM counted
)
SELECT tenant, destination, name, class, reason, sum(stored) AS stored, sum(counted) AS counted
FROM both
GROUP BY tenant, destination, name, class, reason
HAVING sum(stored) <> sum(counted)
LIMIT ?1
