SELECT
    d.seq, d.tenant, d.id, d.entry, d.generation, d.destination, d.destination_version, d.operation_key,
    d.class, d.reason, d.code, d.message, d.rule,
    d.last_class, d.last_reason, d.last_provider_code, d.last_text,
    d.first_failed, d.last_failed, d.first_claimed, d.opened, d.attempts,
    d.claims, d.failed, d.crashed, d.deferred, d.interrupted, d.unanswered,
    d.fingerprint_version, d.fingerprint, d.template, d.state, d.deliver_by, d.envelope_ref, d.created,
    v.envelope, v.meta_schema, v.meta, v.payload_size, v.payload_sha256
FROM dlo_dead_letter AS d
LEFT JOIN dlo_envelope AS v ON v.id = d.envelope_ref AND v.tenant = d.tenant
