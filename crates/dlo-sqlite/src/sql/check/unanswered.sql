-- Unclaimed live rows of one destination whose last send has no answer: (tenant, entry, generation).
-- Manual review is never selected, so it is not looked at.
SELECT tenant, entry, generation
FROM dlo_entry
WHERE tenant = ?1 AND destination = ?2 AND claim_token IS NULL AND manual_review = 0 AND unanswered = 1
LIMIT ?3;
