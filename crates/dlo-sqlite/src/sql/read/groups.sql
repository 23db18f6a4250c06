-- ?1 tenant, ?2 destination, ?3 class, ?4 reason, ?5 state, each or NULL, ?6 limit, ?7 fingerprint or NULL. Class, reason and template are part
-- of the fingerprint, so any member's stand for the group.
SELECT tenant, destination, fingerprint_version, fingerprint, min(template), min(class), min(reason),
       count(*) AS members, sum(state = 'open'), min(opened), max(opened)
FROM dlo_dead_letter
WHERE (?1 IS NULL OR tenant = ?1) AND (?2 IS NULL OR destination = ?2) AND (?3 IS NULL OR class = ?3)
  AND (?4 IS NULL OR reason = ?4) AND (?5 IS NULL OR state = ?5)
  AND (?7 IS NULL OR fingerprint = ?7)
GROUP BY tenant, destination, fingerprint_version, fingerprint
ORDER BY members DESC, tenant, destination, fingerprint_version, fingerprint
LIMIT ?6
