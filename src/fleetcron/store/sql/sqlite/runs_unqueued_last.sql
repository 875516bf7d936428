-- As runs_unqueued_first, but the newest ones, after an instant.
SELECT t.run_id, t.job_id, t.run_after_ms AS due_ms, t.created_ms
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'after_ms' AS after_ms FROM json_each(:rows)) AS n
CROSS JOIN runs AS t ON t.run_id IN (
    SELECT r.run_id FROM runs AS r
    WHERE r.job_id = n.job_id AND r.kind <> 'manual' AND r.scheduled_for_ms > n.after_ms
        AND r.scheduled_for_ms < :now_ms AND r.run_after_ms < :now_ms
        AND r.kind = 'tick' AND r.lane = 'live' AND r.round = 0 AND r.finished_ms IS NULL
        AND NOT EXISTS (SELECT 1 FROM queue AS q WHERE q.run_id = r.run_id)
        AND NOT EXISTS (SELECT 1 FROM leases AS l WHERE l.run_id = r.run_id)
    ORDER BY r.scheduled_for_ms DESC
    LIMIT :most)
ORDER BY t.job_id, t.scheduled_for_ms
