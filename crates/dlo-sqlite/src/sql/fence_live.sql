SELECT seq, generation, destination, version, claim_token, send_mark, manual_review, failed,
    last_verb, last_token, last_version
FROM dlo_entry WHERE tenant = ?1 AND entry = ?2
