-- Put runs on their way to an instant.
INSERT INTO upcoming (run_after_ms, run_id, job_id, lane)
SELECT run_after_ms, run_id, job_id, lane
FROM (SELECT value ->> 'run_after_ms' AS run_after_ms, value ->> 'run_id' AS run_id, value ->> 'job_id' AS job_id,
    value ->> 'lane' AS lane FROM json_each(:rows)) AS n
WHERE true
ON CONFLICT DO NOTHING
