SELECT tenant, destination, class, reason, value FROM dlo_total WHERE name = 'dead_letters'
