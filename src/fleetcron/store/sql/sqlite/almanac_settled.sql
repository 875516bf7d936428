-- The last instant of the jobs of some timings that nothing can take back: of a change, a claim, an answer, a gap; and of
-- the tables. Only a job whose cursor is ahead of the clock can have such an instant ahead of it.
-- What people have cancelled or replayed stands, and delays nothing.
WITH ahead AS MATERIALIZED (
    SELECT c.job_id
    FROM (
        SELECT value ->> 'timing_id' AS timing_id
        FROM json_each(:rows)
    ) AS n
    JOIN cursors AS c ON c.timing_id = n.timing_id
    WHERE c.cursor_ms > :now_ms AND c.state IN ('active', 'paused')
)
SELECT max(settled.ms) AS settled_ms
FROM (
    SELECT max(a.noted_ms) AS ms FROM almanac AS a
    UNION ALL
    SELECT max(j.updated_ms) AS ms FROM ahead AS a JOIN jobs AS j ON j.job_id = a.job_id
    UNION ALL
    SELECT max(r.scheduled_for_ms) AS ms
    FROM ahead AS a
    JOIN runs AS r ON r.job_id = a.job_id AND r.scheduled_for_ms > :now_ms AND r.kind <> 'manual'
    WHERE r.state <> 'cancelled' AND r.round = 0 AND NOT (r.lane = 'live' AND r.state = 'planned' AND r.attempt = 0 AND EXISTS (
        SELECT 1 FROM upcoming AS u WHERE u.run_after_ms = r.run_after_ms AND u.run_id = r.run_id))
    UNION ALL
    SELECT max((SELECT l.to_ms FROM ledger AS l WHERE l.job_id = a.job_id ORDER BY l.from_ms DESC LIMIT 1)) AS ms
    FROM ahead AS a
    UNION ALL
    SELECT max(g.to_ms) AS ms FROM ahead AS a JOIN gaps AS g ON g.job_id = a.job_id
) AS settled
