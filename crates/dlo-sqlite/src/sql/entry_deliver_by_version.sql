DELETE FROM dlo_entry
WHERE tenant = ?1 AND entry = ?2 AND generation = ?3 AND destination = ?4 AND version = ?5
RETURNING seq, claim_token, manual_review, failed, envelope_ref, operation_key, created
