SELECT coalesce(sum(open), 0) FROM dlo_claim WHERE tenant = ?1 AND destination = ?2
