UPDATE dlo_meta SET value = min(?1, coalesce((SELECT max(ended_seq) FROM dlo_history), 0))
WHERE name = 'history_pruned'
