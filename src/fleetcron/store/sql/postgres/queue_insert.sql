-- Queue runs in their fair order. The place of each is given: its job may be edited while it is decided. A run that rests
-- between two attempts keeps the key that it holds, whatever its job says by now.
INSERT INTO queue (run_id, job_id, tenant, pool, type, lane, kind, priority, rank, due_ms, scheduled_for_ms,
    deadline_ms, overlap, claim_key, max_running, handler, depends, attempt, failures, losses, round, leased)
SELECT r.run_id, r.job_id, j.tenant, n.pool, j.type, r.lane, r.kind, n.priority, n.rank, n.due_ms, r.scheduled_for_ms,
    CASE WHEN r.kind = 'tick' AND r.round = 0 THEN r.scheduled_for_ms + j.start_deadline_ms END, j.overlap,
    CASE WHEN l.run_id IS NULL THEN j.claim_key ELSE l.claim_key END, j.max_running, j.handler, j.depends, coalesce(l.attempt, r.attempt), coalesce(l.failures, r.failures),
    coalesce(l.losses, r.losses), r.round, CASE WHEN l.run_id IS NULL THEN 0 ELSE 1 END
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (run_id BIGINT, pool TEXT, priority INTEGER, rank BIGINT,
    due_ms BIGINT)
JOIN runs AS r ON r.run_id = n.run_id
JOIN jobs AS j ON j.job_id = r.job_id
LEFT JOIN leases AS l ON l.run_id = n.run_id
WHERE true
ON CONFLICT (run_id) DO NOTHING
