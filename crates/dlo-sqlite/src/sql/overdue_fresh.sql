-- Never tried and due where their age starts, or before.
SELECT seq FROM dlo_entry
WHERE tenant = ?1 AND destination = ?2 AND lane = 0 AND due <= ?3 AND age_from <= ?3
    AND claim_token IS NULL AND manual_review = 0
ORDER BY due LIMIT ?4
