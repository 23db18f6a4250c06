SELECT h.ended_seq, h.tenant, h.entry, h.attempts, h.ended < ?2, h.ended > ?4,
    EXISTS (SELECT 1 FROM dlo_dead_letter AS d WHERE d.tenant = h.tenant AND d.entry = h.entry)
FROM dlo_history AS h
WHERE h.ended_seq > ?1
ORDER BY h.ended_seq LIMIT ?3
