-- OR FAIL: whoever claims rolls the whole verb back when it fails, so SQLite need keep no journal of the statement.
UPDATE OR FAIL dlo_entry SET
    claim_token = ?2, version = version + 1, claims = claims + 1, first_claimed = coalesce(first_claimed, ?3),
    updated = ?3
WHERE seq IN (SELECT value FROM json_each(?1))
