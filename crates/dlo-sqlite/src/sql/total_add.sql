INSERT INTO dlo_total (tenant, destination, name, class, reason, value) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (tenant, destination, name, class, reason) DO UPDATE SET value = value + excluded.value
