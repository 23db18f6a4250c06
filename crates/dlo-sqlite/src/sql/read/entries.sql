-- Latest generations, newest first: live rows, history and quarantine merged by sequence, each read through its own
-- index, so that a page stops early. ?1 sequence to stay below; ?2, ?3, ?4 whether to look at live rows, history,
-- quarantine. What ended in history has no later generation; what was redriven has one. History has the names of the
-- event; of the others the envelope is looked up, for rows that pass the other filters only.
SELECT seq, tenant, entry, generation, destination, 'live' AS place, created, due, status, manual_review,
       claim_token IS NOT NULL AS claimed, attempts, last_class, last_reason, envelope_ref, NULL, NULL
FROM dlo_entry
WHERE ?2 AND seq < ?1
UNION ALL
SELECT seq, tenant, entry, generation, destination, state, created, NULL, NULL, NULL, NULL, attempts, NULL, NULL,
       NULL, event_type, source_event_id
FROM dlo_history
WHERE ?3 AND seq < ?1
UNION ALL
SELECT entry_seq, tenant, entry, generation, destination, 'dead_lettered', created, NULL, NULL, NULL, NULL, attempts,
       last_class, last_reason, envelope_ref, NULL, NULL
FROM dlo_dead_letter
WHERE ?4 AND state <> 'redriven' AND entry_seq < ?1
ORDER BY seq DESC
