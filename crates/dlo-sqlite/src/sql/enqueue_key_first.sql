SELECT id, envelope, content_hash FROM dlo_enqueue_key WHERE tenant = ?1 AND producer = ?2 AND key = ?3
