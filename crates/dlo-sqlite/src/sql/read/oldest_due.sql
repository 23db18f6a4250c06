-- The head of each lane of the ready index. ?1 tenant, ?2 destination, ?3 now.
SELECT min(head)
FROM (
    SELECT min(due) AS head FROM dlo_entry INDEXED BY dlo_entry_ready
    WHERE claim_token IS NULL AND manual_review = 0 AND tenant = ?1 AND destination = ?2 AND lane = 0 AND due <= ?3
    UNION ALL
    SELECT min(due) FROM dlo_entry INDEXED BY dlo_entry_ready
    WHERE claim_token IS NULL AND manual_review = 0 AND tenant = ?1 AND destination = ?2 AND lane = 1 AND due <= ?3
    UNION ALL
    SELECT min(due) FROM dlo_entry INDEXED BY dlo_entry_ready
    WHERE claim_token IS NULL AND manual_review = 0 AND tenant = ?1 AND destination = ?2 AND lane = 2 AND due <= ?3
)
