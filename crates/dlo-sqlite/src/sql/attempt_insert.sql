-- Recording a failure can't fail: a number that is there already is replaced.
INSERT OR REPLACE INTO dlo_attempt (
    tenant, entry, number, generation, started, finished, outcome, class, reason, rule, phase, http_status,
    provider_code, text, charged, token, destination_version
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
