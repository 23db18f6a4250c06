SELECT coalesce(length(v.payload), 0) FROM dlo_entry AS e
LEFT JOIN dlo_envelope AS v ON v.id = e.envelope_ref AND v.tenant = e.tenant
WHERE e.seq = ?1
