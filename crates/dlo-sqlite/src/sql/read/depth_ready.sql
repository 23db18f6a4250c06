-- One range of the ready index per lane. ?1 tenant, ?2 destination, ?3 now.
SELECT sum(ready)
FROM (
    SELECT count(*) AS ready FROM dlo_entry INDEXED BY dlo_entry_ready
    WHERE claim_token IS NULL AND manual_review = 0 AND tenant = ?1 AND destination = ?2 AND lane = 0 AND due <= ?3
    UNION ALL
    SELECT count(*) FROM dlo_entry INDEXED BY dlo_entry_ready
    WHERE claim_token IS NULL AND manual_review = 0 AND tenant = ?1 AND destination = ?2 AND lane = 1 AND due <= ?3
    UNION ALL
    SELECT count(*) FROM dlo_entry INDEXED BY dlo_entry_ready
    WHERE claim_token IS NULL AND manual_review = 0 AND tenant = ?1 AND destination = ?2 AND lane = 2 AND due <= ?3
)
