UPDATE dlo_envelope SET refs = refs - 1 WHERE id = ?1
RETURNING envelope, event_type, source_event_id, correlation_id, content_type, payload_size, payload_sha256
