-- OR FAIL: what a statement of several rows inserted before a failure stays; the caller rolls the whole verb back.
-- A new entry stands in the pending lane, due where its age starts.
INSERT OR FAIL INTO dlo_entry (
    seq, tenant, entry, generation, destination, envelope_ref, operation_key, created, updated, not_before, deliver_by,
    age_from, lane, due, status, version, origin
) VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7, ?7, ?8, ?9, ?10, 0, ?10, 'pending', 1, ?11)
