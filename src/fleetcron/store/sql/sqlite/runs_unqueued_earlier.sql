-- Jobs of which the tick before a given one is due and on its way, too.
SELECT n.job_id
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'from_ms' AS from_ms FROM json_each(:rows)) AS n
CROSS JOIN runs AS p ON p.run_id = (
    SELECT r.run_id FROM runs AS r
    WHERE r.job_id = n.job_id AND r.kind <> 'manual' AND r.scheduled_for_ms < n.from_ms
    ORDER BY r.scheduled_for_ms DESC
    LIMIT 1)
WHERE p.kind = 'tick' AND p.lane = 'live' AND p.round = 0 AND p.finished_ms IS NULL AND p.run_after_ms < :now_ms
    AND EXISTS (SELECT 1 FROM upcoming AS u WHERE u.run_after_ms = p.run_after_ms AND u.run_id = p.run_id)
ORDER BY n.job_id
