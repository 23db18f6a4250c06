UPDATE dlo_entry SET
    claim_token = NULL, send_mark = 0, version = version + 1, updated = ?2,
    lane = coalesce(?3, lane), due = coalesce(?4, due), status = ?5, manual_review = ?6,
    claims = ?7, failed = ?8, crashed = ?9, deferred = ?10, interrupted = ?11, attempts = ?12,
    first_failed = ?13, last_failed = ?14,
    last_class = ?15, last_reason = ?16, last_provider_code = ?17, last_text = ?18, unanswered = ?19,
    last_verb = 'settle', last_token = ?20, last_version = ?21
WHERE seq = ?1
