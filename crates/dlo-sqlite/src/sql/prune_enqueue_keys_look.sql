SELECT id, first_seen < ?2, first_seen > ?4 FROM dlo_enqueue_key WHERE id > ?1 ORDER BY id LIMIT ?3
