UPDATE dlo_entry SET
    claim_token = NULL, interrupted = interrupted + 1, version = version + 1, updated = ?2,
    last_verb = 'release', last_token = ?3, last_version = ?4
WHERE seq = ?1
