-- For live ticks: the live run of the same job before them. Not a replayed one (I7), nor one that was left out before
-- the tick was due: by an answer, or because its start deadline was over.
SELECT n.run_id, n.job_id, p.run_id AS previous, p.finished_ms, p.scheduled_for_ms,
    (SELECT q.due_ms FROM queue AS q WHERE q.run_id = p.run_id AND q.attempt = 0 AND q.overlap = 'skip') AS skips_at_ms,
    CASE WHEN p.state IN ('skipped', 'expired', 'merged') THEN 1 ELSE 0 END AS left_out,
    (SELECT q.deadline_ms FROM queue AS q WHERE q.run_id = p.run_id AND q.attempt = 0) AS deadline_ms,
    CASE WHEN p.finished_ms IS NOT NULL OR EXISTS (SELECT 1 FROM leases AS l WHERE l.run_id = p.run_id)
        THEN 1 ELSE 0 END AS started
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'job_id' AS job_id,
    value ->> 'scheduled_for_ms' AS scheduled_for_ms, value ->> 'due_ms' AS due_ms FROM json_each(:rows)) AS n
JOIN runs AS p ON p.run_id = (
    SELECT i.run_id FROM runs AS i
    WHERE i.job_id = n.job_id AND i.scheduled_for_ms < n.scheduled_for_ms AND i.kind <> 'manual' AND i.kind = 'tick'
        AND i.lane = 'live' AND i.round = 0
        AND NOT (i.state IN ('skipped', 'expired', 'merged') AND i.finished_ms <= n.due_ms)
        AND NOT (i.state = 'planned' AND EXISTS (
            SELECT 1 FROM queue AS q WHERE q.run_id = i.run_id AND q.deadline_ms < n.due_ms AND q.attempt = 0))
    ORDER BY i.scheduled_for_ms DESC LIMIT 1)
