DELETE FROM dlo_envelope WHERE id IN (SELECT value FROM json_each(?1)) AND refs <= 1
