UPDATE dlo_entry SET due = ?2, updated = ?3, version = version + 1 WHERE seq = ?1
