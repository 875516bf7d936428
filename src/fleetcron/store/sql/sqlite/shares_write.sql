-- Remember how far tenants and queues have come; never backwards.
INSERT INTO shares (pool, lane, priority, tenant, rank)
SELECT pool, lane, priority, tenant, rank
FROM (SELECT value ->> 'pool' AS pool, value ->> 'lane' AS lane, value ->> 'priority' AS priority,
    value ->> 'tenant' AS tenant, value ->> 'rank' AS rank FROM json_each(:rows)) AS n
WHERE true
ON CONFLICT (pool, lane, priority, tenant)
DO UPDATE SET rank = CASE WHEN excluded.rank > shares.rank THEN excluded.rank ELSE shares.rank END
