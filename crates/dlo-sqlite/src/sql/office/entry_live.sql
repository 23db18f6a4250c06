SELECT seq, destination, envelope_ref, due, manual_review, claim_token IS NOT NULL
FROM dlo_entry
WHERE tenant = ?1 AND entry = ?2
