SELECT value FROM dlo_total WHERE tenant = ?1 AND destination = ?2 AND name = ?3 AND class = '' AND reason = ''
