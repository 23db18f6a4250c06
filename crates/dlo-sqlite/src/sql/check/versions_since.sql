SELECT schema, spec FROM dlo_destination WHERE tenant = ?1 AND name = ?2 AND version >= ?3
