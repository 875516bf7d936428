-- The oldest ticks of these jobs that are due, were planned, and that nobody has queued yet; with the rule for the late.
SELECT t.run_id, t.job_id, t.scheduled_for_ms, t.due_ms, t.created_ms, CAST(j.definition -> 'misfire' AS TEXT) AS misfire
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, from_ms BIGINT)
JOIN jobs AS j ON j.job_id = n.job_id
CROSS JOIN LATERAL (
    SELECT r.run_id, r.job_id, r.scheduled_for_ms, r.run_after_ms AS due_ms, r.created_ms FROM runs AS r
    WHERE r.job_id = n.job_id AND r.kind <> 'manual' AND r.scheduled_for_ms >= n.from_ms
        AND r.scheduled_for_ms < :now_ms AND r.run_after_ms < :now_ms
        AND r.kind = 'tick' AND r.lane = 'live' AND r.round = 0 AND r.finished_ms IS NULL
        -- one by one (OFFSET 0): as a join, all of the queue would be read for each job
        AND NOT EXISTS (SELECT 1 FROM queue AS q WHERE q.run_id = r.run_id OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM leases AS l WHERE l.run_id = r.run_id OFFSET 0)
    ORDER BY r.scheduled_for_ms
    LIMIT :most
) AS t
ORDER BY t.job_id, t.scheduled_for_ms
