UPDATE dlo_entry SET
    claim_token = ?2, version = version + 1, claims = claims + 1, first_claimed = coalesce(first_claimed, ?3),
    updated = ?3
WHERE seq = ?1
