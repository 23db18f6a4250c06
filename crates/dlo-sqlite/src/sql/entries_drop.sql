DELETE FROM dlo_entry WHERE seq IN (SELECT value FROM json_each(?1))
