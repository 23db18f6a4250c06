SELECT due, seq FROM dlo_entry
WHERE tenant = ?1 AND destination = ?2 AND lane = ?3 AND due <= ?4 AND claim_token IS NULL AND manual_review = 0
ORDER BY due, seq LIMIT ?5
