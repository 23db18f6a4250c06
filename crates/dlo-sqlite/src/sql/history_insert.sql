-- Without an envelope row (damage) the end is recorded all the same. OR FAIL, and no function call: it is one row, so a
-- failure leaves nothing behind, and SQLite need keep no journal of the statement.
INSERT OR FAIL INTO dlo_history (
    tenant, entry, generation, seq, destination, state, operation_key, created, ended,
    envelope, event_type, source_event_id, correlation_id, content_type, payload_size, payload_sha256,
    receipt_kind, receipt_id, attempts, claims, failed, crashed, deferred, interrupted, fence_token, fence_version
)
SELECT
    e.tenant, e.entry, e.generation, e.seq, e.destination, ?2, e.operation_key, e.created, ?3,
    coalesce(v.envelope, x'00000000000000000000000000000000'), coalesce(v.event_type, ''),
    v.source_event_id, v.correlation_id, v.content_type, coalesce(v.payload_size, 0), v.payload_sha256,
    ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13
FROM dlo_entry AS e
LEFT JOIN dlo_envelope AS v ON v.id = e.envelope_ref AND v.tenant = e.tenant
WHERE e.seq = ?1 AND e.claim_token IS ?14
