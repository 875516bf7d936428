-- How many runs are due, and what they wait for.
SELECT tenant, pool, gate, count(*) AS runs FROM queue
WHERE CAST(:tenant AS TEXT) IS NULL OR tenant = :tenant
GROUP BY tenant, pool, gate
