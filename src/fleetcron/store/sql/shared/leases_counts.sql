-- How many runs are in flight: what caps and quotas count.
SELECT pool, tenant, type, count(*) AS held FROM leases WHERE node_id IS NOT NULL GROUP BY pool, tenant, type
