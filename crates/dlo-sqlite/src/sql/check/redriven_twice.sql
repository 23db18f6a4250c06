-- Dead letters with more than one release: (tenant, dead letter, releases).
SELECT tenant, dead_letter, count(*)
FROM dlo_redrive_item
WHERE result = 'redriven'
GROUP BY tenant, dead_letter
HAVING count(*) > 1
LIMIT ?1
