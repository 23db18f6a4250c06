INSERT INTO dlo_audit_event (tenant, id, at, actor, strength, act, target, reason, detail)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
