INSERT INTO dlo_redrive_item (tenant, redrive, dead_letter, result, code, entry, generation, at, audit)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
