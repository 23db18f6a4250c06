-- Destinations where generations were lost or made up: all that were started are
-- live, ended in one of three ways, or were replaced by the next out of manual review.
-- (tenant, destination, enqueued, accounted)
SELECT tenant, destination,
       sum(CASE WHEN name = 'enqueued' THEN value ELSE 0 END) AS enqueued,
       sum(CASE WHEN name IN ('live', 'delivered', 'cancelled', 'dead_letters', 'review_retried') THEN value ELSE 0 END) AS accounted
FROM dlo_total
GROUP BY tenant, destination
HAVING enqueued <> accounted
LIMIT ?1
