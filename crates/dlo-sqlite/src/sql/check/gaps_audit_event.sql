-- Rows that vanished from a table that only grows, as ranges of sequences: (first, last). SQLite remembers the highest
-- one ever given.
WITH numbered (seq, before) AS (
    SELECT seq, lag(seq, 1, 0) OVER (ORDER BY seq) FROM dlo_audit_event
    UNION ALL
    SELECT s.seq + 1, (SELECT coalesce(max(seq), 0) FROM dlo_audit_event)
    FROM sqlite_sequence AS s WHERE s.name = 'dlo_audit_event'
)
SELECT before + 1, seq - 1 FROM numbered WHERE seq > before + 1
LIMIT ?1
