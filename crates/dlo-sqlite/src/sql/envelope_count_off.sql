UPDATE dlo_envelope SET refs = refs - 1 WHERE id = ?1
