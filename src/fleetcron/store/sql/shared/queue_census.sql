-- How many runs are due, since when, and what they wait for.
SELECT tenant, pool, gate, count(*) AS runs, min(due_ms) AS due_ms FROM queue
WHERE CAST(:tenant AS TEXT) IS NULL OR tenant = :tenant
GROUP BY tenant, pool, gate
