INSERT INTO dlo_worker (incarnation, worker, pid, mode, started, lease_until, ended)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, NULL)
