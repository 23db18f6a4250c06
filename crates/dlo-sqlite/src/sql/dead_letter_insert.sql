-- ?15 says whether a transition gives the progress (?16 to ?28) or the row has it. A mark on an open claim says that
-- the first byte may have left: the send is unanswered (I-10). OR FAIL: one row, so SQLite need keep no journal of it.
INSERT OR FAIL INTO dlo_dead_letter (
    tenant, id, entry, generation, entry_seq, destination, destination_version, envelope_ref, operation_key,
    class, reason, code, message, rule, last_class, last_reason, last_provider_code, last_text,
    created, not_before, deliver_by, first_claimed, first_failed, last_failed, opened, attempts,
    claims, failed, crashed, deferred, interrupted, unanswered,
    fingerprint_version, fingerprint, template, state, origin, fence_token, fence_version
)
SELECT
    tenant, ?2, entry, generation, seq, destination, ?3, envelope_ref, operation_key,
    ?4, ?5, ?6, ?7, ?8,
    iif(?15, ?24, last_class), iif(?15, ?25, last_reason), iif(?15, ?26, last_provider_code), iif(?15, ?27, last_text),
    created, not_before, deliver_by, first_claimed, iif(?15, ?22, first_failed), iif(?15, ?23, last_failed), ?9,
    iif(?15, ?21, attempts), iif(?15, ?16, claims), iif(?15, ?17, failed), iif(?15, ?18, crashed),
    iif(?15, ?19, deferred), iif(?15, ?20, interrupted), iif(?15, ?28, unanswered OR send_mark),
    ?10, ?11, ?12, 'open', origin, ?13, ?14
FROM dlo_entry WHERE seq = ?1
ON CONFLICT (tenant, entry, generation) DO NOTHING
