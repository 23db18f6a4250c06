SELECT claim_token, count(*) FROM dlo_entry WHERE claim_token IS NOT NULL GROUP BY claim_token
