-- What a claim holds, with everything that an attempt needs. The revision is the job's own: an attempt does what its job
-- says now, whatever it said when the run was planned.
SELECT l.run_id, l.attempt, l.batch, l.job_id, l.tenant, l.pool, l.lane, l.kind, l.due_ms, l.scheduled_for_ms, l.deadline_ms,
    l.failures, l.losses, r.window_from_ms, r.window_to_ms, r.covers, j.revision, r.payload, j.name
FROM leases AS l
JOIN runs AS r ON r.run_id = l.run_id
JOIN jobs AS j ON j.job_id = l.job_id
WHERE l.node_id = :node_id AND l.batch = :batch
ORDER BY l.due_ms, l.run_id
