-- Remember how far tenants and queues have come; never backwards.
INSERT INTO shares (pool, lane, priority, tenant, rank)
SELECT pool, lane, priority, tenant, rank
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (pool TEXT, lane TEXT, priority INTEGER, tenant TEXT, rank BIGINT)
WHERE true
ON CONFLICT (pool, lane, priority, tenant)
DO UPDATE SET rank = CASE WHEN excluded.rank > shares.rank THEN excluded.rank ELSE shares.rank END
