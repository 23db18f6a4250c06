SELECT due FROM dlo_entry
WHERE tenant = ?1 AND destination = ?2 AND lane = ?3 AND claim_token IS NULL AND manual_review = 0
ORDER BY due LIMIT 1
