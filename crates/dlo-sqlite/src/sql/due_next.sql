SELECT tenant, destination FROM dlo_entry
WHERE (tenant, destination) > (?1, ?2) AND claim_token IS NULL AND manual_review = 0
ORDER BY tenant, destination LIMIT 1
