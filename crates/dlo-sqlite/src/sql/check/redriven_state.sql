-- Dead letters whose state and ledger disagree about a release: (tenant, dead letter, state).
SELECT dead.tenant, dead.id, dead.state
FROM dlo_dead_letter AS dead
WHERE (dead.state = 'redriven') <> EXISTS (
    SELECT 1 FROM dlo_redrive_item AS item
    WHERE item.tenant = dead.tenant AND item.dead_letter = dead.id AND item.result = 'redriven'
)
LIMIT ?1
