-- ?1 sequence of the live row, ?2 its new sequence, ?3 due, ?4 now. Keys, counters, number of attempts, first claim
-- and the unanswered send are kept; counters become the baseline.
UPDATE dlo_entry
SET seq = ?2, generation = generation + 1, created = ?4, updated = ?4, age_from = max(?4, coalesce(not_before, ?4)),
    lane = 0, due = ?3, status = 'pending', manual_review = 0, version = 1,
    base_claims = claims, base_failed = failed, base_crashed = crashed,
    base_deferred = deferred, base_interrupted = interrupted,
    first_failed = NULL, last_failed = NULL,
    last_class = NULL, last_reason = NULL, last_provider_code = NULL, last_text = NULL,
    last_verb = NULL, last_token = NULL, last_version = NULL, send_mark = 0
WHERE seq = ?1
