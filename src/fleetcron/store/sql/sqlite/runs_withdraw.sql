-- Take back the forecasts of jobs: planned runs of ticks that are still to come and that nobody has claimed.
CREATE TEMP TABLE IF NOT EXISTS gone (run_id INTEGER PRIMARY KEY, run_after_ms INTEGER, job_id TEXT);
DELETE FROM temp.gone;
INSERT INTO temp.gone
SELECT r.run_id, r.run_after_ms, r.job_id
FROM (
    SELECT value ->> 'job_id' AS job_id, value ->> 'at_ms' AS at_ms
    FROM json_each(:rows)
) AS n
JOIN runs AS r ON r.job_id = n.job_id AND r.scheduled_for_ms > n.at_ms AND r.kind <> 'manual' AND r.kind = 'tick' AND r.lane = 'live'
    AND r.state = 'planned' AND r.attempt = 0
JOIN upcoming AS u ON u.run_after_ms = r.run_after_ms AND u.run_id = r.run_id;
DELETE FROM upcoming WHERE EXISTS (
    SELECT 1 FROM temp.gone AS g WHERE g.run_after_ms = upcoming.run_after_ms AND g.run_id = upcoming.run_id
);
DELETE FROM runs WHERE run_id IN (SELECT run_id FROM temp.gone);
SELECT job_id, count(*) AS withdrawn FROM temp.gone GROUP BY job_id ORDER BY job_id
