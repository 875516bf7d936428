-- Jobs of which the tick before a given one is due and on its way, too.
SELECT n.job_id
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, from_ms BIGINT)
CROSS JOIN LATERAL (
    SELECT r.run_id, r.run_after_ms, r.kind, r.lane, r.round, r.finished_ms FROM runs AS r
    WHERE r.job_id = n.job_id AND r.kind <> 'manual' AND r.scheduled_for_ms < n.from_ms
    ORDER BY r.scheduled_for_ms DESC
    LIMIT 1
) AS p
WHERE p.kind = 'tick' AND p.lane = 'live' AND p.round = 0 AND p.finished_ms IS NULL AND p.run_after_ms < :now_ms
    AND EXISTS (SELECT 1 FROM upcoming AS u WHERE u.run_after_ms = p.run_after_ms AND u.run_id = p.run_id OFFSET 0)
ORDER BY n.job_id
