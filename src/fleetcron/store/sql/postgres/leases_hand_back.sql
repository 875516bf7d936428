-- Held runs that never started go back: whoever takes them next uses the same number of attempt.
SELECT l.run_id, l.job_id, l.lane, l.attempt, l.due_ms, l.failures, l.losses, l.claim_key, l.tenant, l.pool, l.type,
    l.cancel, r.started_ms
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (run_id BIGINT, attempt INTEGER, batch TEXT)
JOIN leases AS l ON l.run_id = n.run_id
JOIN runs AS r ON r.run_id = n.run_id
WHERE l.attempt = n.attempt AND l.batch = n.batch AND l.node_id = :node_id
ORDER BY l.run_id
FOR UPDATE OF l
