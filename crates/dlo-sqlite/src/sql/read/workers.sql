WITH held (incarnation, claims) AS (SELECT incarnation, sum(open) FROM dlo_claim GROUP BY incarnation)
SELECT w.worker, w.incarnation, w.pid, w.started, w.lease_until, w.ended, coalesce(held.claims, 0)
FROM dlo_worker AS w
LEFT JOIN held ON held.incarnation = w.incarnation
ORDER BY w.id DESC
LIMIT ?1
