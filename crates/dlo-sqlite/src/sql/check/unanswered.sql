-- Unclaimed live rows of one destination whose last send has no answer: (tenant, entry, generation, version of the
-- destination that the latest attempt ran with, or the first). Manual review is never selected, so it is not looked at.
SELECT e.tenant, e.entry, e.generation, coalesce((
           SELECT a.destination_version FROM dlo_attempt AS a
           WHERE a.tenant = e.tenant AND a.entry = e.entry
           ORDER BY a.number DESC LIMIT 1
       ), 1)
FROM dlo_entry AS e
WHERE e.tenant = ?1 AND e.destination = ?2 AND e.claim_token IS NULL AND e.manual_review = 0 AND e.unanswered = 1
LIMIT ?3
