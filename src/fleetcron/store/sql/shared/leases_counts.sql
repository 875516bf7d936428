-- How many runs are in flight, and how many of them are catch-up: what caps and quotas count.
SELECT pool, tenant, type, count(*) AS held, sum(CASE WHEN lane = 'catchup' THEN 1 ELSE 0 END) AS lent
FROM leases WHERE node_id IS NOT NULL GROUP BY pool, tenant, type
