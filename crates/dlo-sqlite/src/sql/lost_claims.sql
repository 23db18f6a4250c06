-- One row per claimed page: few. A lease of a plain-mode worker has no end. ?2: whose claims are left (null: nobody's).
SELECT c.token, c.members FROM dlo_claim AS c
LEFT JOIN dlo_worker AS w ON w.incarnation = c.incarnation
WHERE c.incarnation IS NOT ?2 AND (
    c.deadline <= ?1 OR w.incarnation IS NULL OR w.ended IS NOT NULL OR (w.mode <> 'plain' AND w.lease_until <= ?1))
