DELETE FROM dlo_enqueue_key WHERE id IN (
    SELECT id FROM (SELECT id, first_seen FROM dlo_enqueue_key ORDER BY id LIMIT ?3)
    WHERE first_seen < ?1
    ORDER BY id LIMIT ?2
)
