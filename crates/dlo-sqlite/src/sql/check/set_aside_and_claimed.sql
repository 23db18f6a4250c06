-- Rows in more than one live state: claimed and set aside for a person: (tenant, entry, generation).
SELECT tenant, entry, generation FROM dlo_entry WHERE manual_review = 1 AND claim_token IS NOT NULL LIMIT ?1
