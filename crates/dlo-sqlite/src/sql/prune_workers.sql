-- Ended workers without open claims; the newest are kept for whoever looks back. ?1 before, ?2 limit, ?3 kept.
DELETE FROM dlo_worker WHERE id IN (
    SELECT w.id FROM dlo_worker AS w
    WHERE w.ended < ?1
        AND w.id NOT IN (SELECT id FROM dlo_worker ORDER BY id DESC LIMIT ?3)
        AND NOT EXISTS (SELECT 1 FROM dlo_claim AS c WHERE c.incarnation = w.incarnation)
    ORDER BY w.id LIMIT ?2
)
