SELECT
    e.seq, e.tenant, e.entry, e.generation, e.destination, e.operation_key, e.created, e.updated, e.not_before,
    e.deliver_by, e.lane, e.due, e.status, e.manual_review, e.version,
    e.claims, e.failed, e.crashed, e.deferred, e.interrupted,
    e.base_claims, e.base_failed, e.base_crashed, e.base_deferred, e.base_interrupted,
    e.attempts, e.first_claimed, e.first_failed, e.last_failed,
    e.last_class, e.last_reason, e.last_provider_code, e.last_text, e.unanswered,
    v.envelope,
    e.claim_token, e.send_mark, c.incarnation, c.claimed, c.deadline, c.sole_suspect
FROM dlo_entry AS e
LEFT JOIN dlo_envelope AS v ON v.id = e.envelope_ref AND v.tenant = e.tenant
LEFT JOIN dlo_claim AS c ON c.token = e.claim_token
