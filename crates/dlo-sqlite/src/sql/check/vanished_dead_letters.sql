-- Ledger rows of dead letters that do not exist any more: (tenant, dead letter, redrive).
SELECT item.tenant, item.dead_letter, item.redrive
FROM dlo_redrive_item AS item
WHERE item.result <> 'missing'
  AND NOT EXISTS (SELECT 1 FROM dlo_dead_letter AS d WHERE d.tenant = item.tenant AND d.id = item.dead_letter)
LIMIT ?1
