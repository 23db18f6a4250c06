-- Destinations where generations were lost or made up: all that were enqueued are live or ended in one of three ways.
-- (tenant, destination, enqueued, accounted)
SELECT tenant, destination,
       sum(CASE WHEN name = 'enqueued' THEN value ELSE 0 END) AS enqueued,
       sum(CASE WHEN name IN ('live', 'delivered', 'cancelled', 'dead_letters') THEN value ELSE 0 END) AS accounted
FROM dlo_total
GROUP BY tenant, destination
HAVING enqueued <> accounted
LIMIT ?1;
