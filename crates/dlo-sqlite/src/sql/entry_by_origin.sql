SELECT v.envelope FROM dlo_entry AS e
JOIN dlo_envelope AS v ON v.id = e.envelope_ref AND v.tenant = e.tenant
WHERE e.tenant = ?1 AND e.origin = ?2 AND e.destination = ?3
