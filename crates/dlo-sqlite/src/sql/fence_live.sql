-- ?3: where it must go (null: anywhere); ?4: the verb that may have been done before (null: none).
SELECT seq, envelope_ref, generation, version, claim_token, send_mark, manual_review, failed,
    ?3 IS NULL OR destination = ?3, coalesce(last_verb = ?4, 0), last_token, last_version
FROM dlo_entry WHERE tenant = ?1 AND entry = ?2
