-- One row per claimed page: few.
SELECT c.token, c.members FROM dlo_claim AS c
LEFT JOIN dlo_worker AS w ON w.incarnation = c.incarnation
WHERE c.deadline <= ?1 OR w.incarnation IS NULL OR w.ended IS NOT NULL OR w.lease_until <= ?1
