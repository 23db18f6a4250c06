-- OR FAIL: what a statement of several rows inserted before a failure stays; the caller rolls the whole verb back.
INSERT OR FAIL INTO dlo_envelope (
    id, tenant, envelope, refs, event_type, source_event_id, correlation_id, audit_residue_id, content_type,
    meta_schema, meta, payload_form, payload_size, payload_sha256, key_id, payload
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
