-- Take back the forecasts of jobs: planned runs of ticks that are still to come and that nobody has claimed.
WITH unclaimed AS (
    DELETE FROM upcoming AS u
    USING jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, at_ms BIGINT), runs AS r
    WHERE r.job_id = n.job_id AND r.scheduled_for_ms > n.at_ms AND r.kind = 'tick' AND r.lane = 'live'
        AND r.state = 'planned' AND r.attempt = 0 AND u.run_after_ms = r.run_after_ms AND u.run_id = r.run_id
    RETURNING u.run_id
),
gone AS (
    DELETE FROM runs AS r USING unclaimed AS u WHERE r.run_id = u.run_id RETURNING r.job_id
)
SELECT job_id, count(*) AS withdrawn FROM gone GROUP BY job_id ORDER BY job_id
