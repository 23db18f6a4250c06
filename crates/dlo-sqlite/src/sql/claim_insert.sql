INSERT INTO dlo_claim (token, tenant, destination, incarnation, claimed, deadline, sole_suspect, open, members)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
