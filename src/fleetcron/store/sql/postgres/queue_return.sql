-- Queue held runs again that go back, at the front: their turn had come. One that has started before keeps its key.
INSERT INTO queue (run_id, job_id, tenant, pool, type, lane, kind, priority, rank, due_ms, scheduled_for_ms,
    deadline_ms, overlap, claim_key, max_running, handler, depends, attempt, failures, losses, round, leased)
SELECT r.run_id, r.job_id, j.tenant, j.pool, j.type, r.lane, r.kind, j.priority,
    coalesce((SELECT v.rank FROM shares AS v
              WHERE v.pool = j.pool AND v.lane = r.lane AND v.priority = j.priority AND v.tenant = ''), 0),
    l.due_ms, r.scheduled_for_ms,
    CASE WHEN r.kind = 'tick' AND r.round = 0 THEN r.scheduled_for_ms + j.start_deadline_ms END, j.overlap,
    CASE WHEN r.started_ms IS NULL THEN j.claim_key ELSE l.claim_key END, j.max_running, j.handler,
    j.depends, l.attempt - 1, l.failures, l.losses, r.round,
    CASE WHEN r.started_ms IS NULL THEN 0 ELSE 1 END
FROM leases AS l
JOIN runs AS r ON r.run_id = l.run_id
JOIN jobs AS j ON j.job_id = r.job_id
WHERE l.run_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS v (value))
ON CONFLICT (run_id) DO NOTHING
RETURNING run_id, pool, lane, priority, CASE WHEN attempt = 0 AND leased = 0 THEN deadline_ms END AS deadline_ms
