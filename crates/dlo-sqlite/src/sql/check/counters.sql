-- Counters below their baseline: (tenant, entry, generation, counter, baseline, value).
SELECT tenant, entry, generation, 'claims', base_claims, claims FROM dlo_entry WHERE base_claims > claims
UNION ALL
SELECT tenant, entry, generation, 'failed', base_failed, failed FROM dlo_entry WHERE base_failed > failed
UNION ALL
SELECT tenant, entry, generation, 'crashed', base_crashed, crashed FROM dlo_entry WHERE base_crashed > crashed
UNION ALL
SELECT tenant, entry, generation, 'deferred', base_deferred, deferred FROM dlo_entry WHERE base_deferred > deferred
UNION ALL
SELECT tenant, entry, generation, 'interrupted', base_interrupted, interrupted
FROM dlo_entry WHERE base_interrupted > interrupted
LIMIT ?1;
