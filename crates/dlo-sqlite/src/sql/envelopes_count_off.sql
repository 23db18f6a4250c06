UPDATE OR FAIL dlo_envelope SET refs = refs - 1 WHERE id IN (SELECT value FROM json_each(?1))
