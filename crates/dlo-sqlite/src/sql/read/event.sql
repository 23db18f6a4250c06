SELECT event_type, source_event_id FROM dlo_envelope WHERE id = ?1 AND tenant = ?2
