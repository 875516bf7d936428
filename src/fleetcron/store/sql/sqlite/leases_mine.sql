-- What a node holds of these attempts; a lease that has gone to somebody else is not returned.
SELECT l.run_id, l.due_ms, l.attempt, l.node_id, l.job_id, l.tenant, l.pool, l.type, l.lane, l.scheduled_for_ms,
    l.claim_key, l.failures, l.losses, l.cancel
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'attempt' AS attempt FROM json_each(:rows)) AS n
JOIN leases AS l ON l.run_id = n.run_id
WHERE l.attempt = n.attempt AND l.node_id = :node_id
ORDER BY l.run_id
