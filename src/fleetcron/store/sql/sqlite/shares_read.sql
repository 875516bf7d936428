-- How far tenants have come in their queues, and the queues themselves.
SELECT s.pool, s.lane, s.priority, s.tenant, s.rank
FROM (SELECT value ->> 'pool' AS pool, value ->> 'lane' AS lane, value ->> 'priority' AS priority,
    value ->> 'tenant' AS tenant FROM json_each(:rows)) AS n
JOIN shares AS s ON s.pool = n.pool AND s.lane = n.lane AND s.priority = n.priority AND s.tenant = n.tenant
