-- The first and the newest stay: what is too many goes from behind the first.
DELETE FROM dlo_attempt WHERE tenant = ?1 AND entry = ?2 AND number IN (
    SELECT number FROM dlo_attempt WHERE tenant = ?1 AND entry = ?2 AND generation = ?3
    ORDER BY number
    LIMIT max(0, (SELECT count(*) FROM dlo_attempt WHERE tenant = ?1 AND entry = ?2 AND generation = ?3) - ?4)
    OFFSET 1
)
