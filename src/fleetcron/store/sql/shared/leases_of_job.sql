-- What a job holds, under whatever key, for people: nothing is locked.
SELECT l.run_id, l.node_id, CASE WHEN l.node_id IS NOT NULL AND l.claimed_ms > l.due_ms THEN l.claimed_ms
    ELSE l.due_ms END AS at_ms, j.tenant, j.name
FROM leases AS l
JOIN jobs AS j ON j.job_id = l.job_id
WHERE l.job_id = :job_id
ORDER BY l.run_id
