-- An unclaimed entry with what it carries: the columns of entry_select.sql, then those of its envelope, then its rowid and
-- the length of its body (which is in the row's header: the body itself is not read for it).
SELECT
    e.seq, e.tenant, e.entry, e.generation, e.destination, e.operation_key, e.created, e.updated, e.not_before,
    e.deliver_by, e.lane, e.due, e.status, e.manual_review, e.version,
    e.claims, e.failed, e.crashed, e.deferred, e.interrupted,
    e.base_claims, e.base_failed, e.base_crashed, e.base_deferred, e.base_interrupted,
    e.attempts, e.first_claimed, e.first_failed, e.last_failed,
    e.last_class, e.last_reason, e.last_provider_code, e.last_text, e.unanswered,
    v.envelope,
    e.claim_token, e.send_mark, NULL, NULL, NULL, NULL,
    v.meta_schema, v.meta, v.payload_form, v.payload_sha256, v.key_id, v.payload,
    e.envelope_ref, coalesce(length(v.payload), 0)
FROM dlo_entry AS e
LEFT JOIN dlo_envelope AS v ON v.id = e.envelope_ref AND v.tenant = e.tenant
WHERE e.seq = ?1
