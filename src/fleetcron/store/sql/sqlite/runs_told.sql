-- Runs as they are now, with who holds them and what they wait for; the newest first.
SELECT r.run_id, r.job_id, r.scheduled_for_ms, r.run_after_ms, r.created_ms, r.finished_ms, r.window_from_ms,
    r.window_to_ms, r.almanac, r.covers, r.revision, r.kind, r.lane, r.started_ms, r.round, r.reason, r.covered_by,
    r.asked_by, j.tenant, j.name, coalesce(l.pool, q.pool, j.pool) AS pool,
    CASE WHEN r.finished_ms IS NOT NULL THEN r.state
         WHEN l.node_id IS NOT NULL AND l.due_ms <= :now_ms THEN 'running'
         WHEN l.run_id IS NOT NULL AND (l.node_id IS NULL OR l.attempt > 1) THEN 'retrying'
         WHEN q.gate IS NOT NULL THEN 'waiting'
         ELSE 'planned' END AS state,
    coalesce(l.attempt, r.attempt) AS attempt, coalesce(l.failures, r.failures) AS failures,
    coalesce(l.losses, r.losses) AS losses, l.node_id, max(l.claimed_ms, l.due_ms) AS begun_ms,
    CASE WHEN l.run_id IS NOT NULL AND l.node_id IS NULL THEN coalesce(q.due_ms, l.due_ms) END AS try_ms,
    l.progress, l.note, l.cancel, q.run_id AS queued_id, q.gate, q.key, q.since_ms, q.look_ms
FROM runs AS r
JOIN jobs AS j ON j.job_id = r.job_id
LEFT JOIN leases AS l ON l.run_id = r.run_id
LEFT JOIN queue AS q ON q.run_id = r.run_id
WHERE r.run_id IN (SELECT value FROM json_each(:ids))
ORDER BY r.run_id DESC
