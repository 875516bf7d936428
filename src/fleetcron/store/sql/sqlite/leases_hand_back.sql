-- Held runs that never started go back: whoever takes them next uses the same number of attempt.
SELECT l.run_id, l.job_id, l.lane, l.attempt, l.due_ms, l.failures, l.losses, l.claim_key, l.tenant, l.pool, l.type,
    l.cancel, r.started_ms
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'attempt' AS attempt, value ->> 'batch' AS batch
    FROM json_each(:rows)) AS n
JOIN leases AS l ON l.run_id = n.run_id
JOIN runs AS r ON r.run_id = n.run_id
WHERE l.attempt = n.attempt AND l.batch = n.batch AND l.node_id = :node_id
ORDER BY l.run_id
