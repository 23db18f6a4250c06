DELETE FROM dlo_envelope WHERE id = ?1 AND refs <= 1
