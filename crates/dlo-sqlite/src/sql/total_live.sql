SELECT value FROM dlo_total WHERE tenant = ?1 AND destination = ?2 AND name = 'live' AND class = '' AND reason = ''
