-- How far tenants have come in their queues, and the queues themselves.
SELECT s.pool, s.lane, s.priority, s.tenant, s.rank
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (pool TEXT, lane TEXT, priority INTEGER, tenant TEXT)
JOIN shares AS s ON s.pool = n.pool AND s.lane = n.lane AND s.priority = n.priority AND s.tenant = n.tenant
