-- Ticks of these jobs that were planned and that nobody has queued yet, with the rule for those that are late.
SELECT r.run_id, r.job_id, r.run_after_ms AS due_ms, r.created_ms, j.definition -> '$.misfire' AS misfire
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'from_ms' AS from_ms FROM json_each(:rows)) AS n
JOIN jobs AS j ON j.job_id = n.job_id
JOIN runs AS r ON r.job_id = n.job_id AND r.scheduled_for_ms >= n.from_ms AND r.kind <> 'manual'
WHERE r.kind = 'tick' AND r.lane = 'live' AND r.round = 0 AND r.finished_ms IS NULL
    AND NOT EXISTS (SELECT 1 FROM queue AS q WHERE q.run_id = r.run_id)
    AND NOT EXISTS (SELECT 1 FROM leases AS l WHERE l.run_id = r.run_id)
ORDER BY r.job_id, r.scheduled_for_ms
