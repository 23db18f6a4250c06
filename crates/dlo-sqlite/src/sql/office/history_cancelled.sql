-- ?1 sequence of the live row, ?2 now. The envelope may be missing in a damaged file: the entry can be ended anyway.
INSERT INTO dlo_history (
    tenant, entry, generation, seq, destination, state, operation_key, created, ended,
    envelope, event_type, source_event_id, correlation_id, content_type, payload_size, payload_sha256,
    attempts, claims, failed, crashed, deferred, interrupted
)
SELECT
    e.tenant, e.entry, e.generation, e.seq, e.destination, 'cancelled', e.operation_key, e.created, ?2,
    coalesce(v.envelope, zeroblob(16)), coalesce(v.event_type, ''), v.source_event_id, v.correlation_id,
    v.content_type, coalesce(v.payload_size, 0), v.payload_sha256,
    e.attempts, e.claims, e.failed, e.crashed, e.deferred, e.interrupted
FROM dlo_entry AS e
LEFT JOIN dlo_envelope AS v ON v.id = e.envelope_ref
WHERE e.seq = ?1
