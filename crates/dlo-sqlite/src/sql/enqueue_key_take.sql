INSERT INTO dlo_enqueue_key (tenant, producer, key, envelope, content_hash, first_seen) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (tenant, producer, key) DO NOTHING
