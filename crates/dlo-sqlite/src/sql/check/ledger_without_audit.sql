-- Ledger rows without their audit event: (tenant, redrive, dead letter, audit).
SELECT item.tenant, item.redrive, item.dead_letter, item.audit
FROM dlo_redrive_item AS item
WHERE NOT EXISTS (SELECT 1 FROM dlo_audit_event AS a WHERE a.tenant = item.tenant AND a.id = item.audit)
LIMIT ?1
