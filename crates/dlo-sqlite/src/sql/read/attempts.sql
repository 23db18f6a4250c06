SELECT number, generation, started, finished, outcome, class, reason, rule, phase, http_status, provider_code, text,
       charged, token, destination_version
FROM dlo_attempt
WHERE tenant = ?1 AND entry = ?2
ORDER BY number
