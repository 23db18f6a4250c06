-- Envelopes whose count of references is not what refers to them: (tenant, envelope, stored, counted).
WITH used (id, uses) AS (
    SELECT envelope_ref, count(*)
    FROM (SELECT envelope_ref FROM dlo_entry UNION ALL SELECT envelope_ref FROM dlo_dead_letter)
    GROUP BY envelope_ref
)
SELECT v.tenant, v.envelope, v.refs, coalesce(used.uses, 0)
FROM dlo_envelope AS v LEFT JOIN used ON used.id = v.id
WHERE v.refs <> coalesce(used.uses, 0)
LIMIT ?1
