SELECT seq, id, tenant, at, actor, strength, act, target, reason, detail
FROM dlo_audit_event
WHERE seq < ?1
ORDER BY seq DESC
