INSERT INTO dlo_history (
    tenant, entry, generation, seq, destination, state, operation_key, created, ended,
    envelope, event_type, source_event_id, correlation_id, content_type, payload_size, payload_sha256,
    receipt_kind, receipt_id, attempts, claims, failed, crashed, deferred, interrupted, fence_token, fence_version
) VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25,
    ?26
)
