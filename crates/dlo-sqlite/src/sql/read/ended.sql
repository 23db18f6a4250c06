-- Ended generations of one entry, oldest first. ?1 tenant, ?2 entry. History keeps what it needs of the envelope;
-- quarantine refers to it.
SELECT generation, state, ended, receipt_kind, receipt_id, NULL AS dead_letter,
       claims, failed, crashed, deferred, interrupted,
       seq, destination, operation_key, created, attempts,
       envelope, event_type, source_event_id, correlation_id, content_type, payload_size, payload_sha256,
       NULL AS envelope_ref, NULL AS last_class, NULL AS last_reason, NULL AS last_provider_code, NULL AS last_text
FROM dlo_history
WHERE tenant = ?1 AND entry = ?2
UNION ALL
SELECT generation, 'dead_lettered', opened, NULL, NULL, id,
       claims, failed, crashed, deferred, interrupted,
       entry_seq, destination, operation_key, created, attempts,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       envelope_ref, last_class, last_reason, last_provider_code, last_text
FROM dlo_dead_letter
WHERE tenant = ?1 AND entry = ?2
ORDER BY generation
