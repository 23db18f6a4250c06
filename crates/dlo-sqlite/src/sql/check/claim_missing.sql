-- Claimed rows whose claim does not exist, or is on another destination: (tenant, entry, generation, token).
SELECT live.tenant, live.entry, live.generation, live.claim_token
FROM dlo_entry AS live
LEFT JOIN dlo_claim AS claim ON claim.token = live.claim_token
WHERE live.claim_token IS NOT NULL
  AND (claim.token IS NULL OR claim.tenant <> live.tenant OR claim.destination <> live.destination)
LIMIT ?1
