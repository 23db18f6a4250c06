SELECT seq FROM dlo_entry
WHERE tenant = ?1 AND destination = ?2 AND deliver_by <= ?3 AND deliver_by IS NOT NULL AND manual_review = 0
    AND claim_token IS NULL
ORDER BY deliver_by LIMIT ?4
