-- ?1 sequence of the dead letter, ?2 sequence of the new generation, ?3 now. Keys, counters, number of attempts, first
-- claim and the unanswered send are kept (I-10, I-11); counters become the baseline (I-07).
INSERT INTO dlo_entry (
    seq, tenant, entry, generation, destination, envelope_ref, operation_key, created, updated,
    not_before, deliver_by, age_from, lane, due, status, version,
    claims, failed, crashed, deferred, interrupted,
    base_claims, base_failed, base_crashed, base_deferred, base_interrupted,
    attempts, first_claimed, unanswered, origin
)
SELECT
    ?2, tenant, entry, generation + 1, destination, envelope_ref, operation_key, ?3, ?3,
    not_before, deliver_by, max(?3, coalesce(not_before, ?3)), 0, max(?3, coalesce(not_before, ?3)), 'pending', 1,
    claims, failed, crashed, deferred, interrupted,
    claims, failed, crashed, deferred, interrupted,
    attempts, first_claimed, unanswered,
    -- Imported again meanwhile: the place belongs to the newer entry.
    CASE WHEN NOT EXISTS (
        SELECT 1 FROM dlo_entry AS e
        WHERE e.tenant = d.tenant AND e.origin = d.origin AND e.destination = d.destination
    ) THEN origin END
FROM dlo_dead_letter AS d
WHERE seq = ?1
