-- Sequences of a table that only grows: (first missing, last missing). Replaces {table}.
WITH numbered (seq, before) AS (
    SELECT seq, lag(seq, 1, 0) OVER (ORDER BY seq) FROM {table}
    UNION ALL
    SELECT (SELECT seq FROM sqlite_sequence WHERE name = '{table}') + 1, (SELECT coalesce(max(seq), 0) FROM {table})
)
SELECT before + 1, seq - 1 FROM numbered WHERE seq > before + 1
LIMIT ?1;
