-- OR FAIL: what a statement of several rows inserted before a failure stays; the caller rolls the whole verb back.
INSERT OR FAIL INTO dlo_enqueue_key (tenant, producer, key, envelope, content_hash, first_seen) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (tenant, producer, key) DO NOTHING
