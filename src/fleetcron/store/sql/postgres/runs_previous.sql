-- For live ticks: the live run of the same job before them. Not a replayed one (I7), nor one that was left out before
-- the tick was due: by an answer, or because its start deadline was over.
SELECT n.run_id, n.job_id, p.run_id AS previous, p.finished_ms, p.scheduled_for_ms,
    (SELECT q.due_ms FROM queue AS q WHERE q.run_id = p.run_id AND q.attempt = 0 AND q.overlap = 'skip') AS skips_at_ms,
    CASE WHEN p.state IN ('skipped', 'expired', 'merged') THEN 1 ELSE 0 END AS left_out,
    (SELECT q.deadline_ms FROM queue AS q WHERE q.run_id = p.run_id AND q.attempt = 0) AS deadline_ms,
    CASE WHEN p.finished_ms IS NOT NULL OR EXISTS (SELECT 1 FROM leases AS l WHERE l.run_id = p.run_id)
        THEN 1 ELSE 0 END AS started
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (run_id BIGINT, job_id UUID, scheduled_for_ms BIGINT, due_ms BIGINT)
CROSS JOIN LATERAL (
    SELECT i.run_id, i.state, i.finished_ms, i.scheduled_for_ms FROM runs AS i
    WHERE i.job_id = n.job_id AND i.scheduled_for_ms < n.scheduled_for_ms AND i.kind <> 'manual' AND i.kind = 'tick'
        AND i.lane = 'live' AND i.round = 0
        AND NOT (i.state IN ('skipped', 'expired', 'merged') AND i.finished_ms <= n.due_ms)
        AND NOT (i.state = 'planned' AND EXISTS (
            SELECT 1 FROM queue AS q WHERE q.run_id = i.run_id AND q.deadline_ms < n.due_ms AND q.attempt = 0))
    ORDER BY i.scheduled_for_ms DESC LIMIT 1
) AS p
