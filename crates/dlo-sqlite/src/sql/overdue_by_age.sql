SELECT seq FROM dlo_entry
WHERE tenant = ?1 AND destination = ?2 AND age_from <= ?3 AND (lane <> 0 OR due > age_from) AND manual_review = 0
    AND claim_token IS NULL
ORDER BY age_from LIMIT ?4
