-- Put runs on their way to an instant. (As text first: an application's connection may have a JSON codec of its own.)
INSERT INTO upcoming (run_after_ms, run_id, job_id, lane)
SELECT run_after_ms, run_id, job_id, lane
FROM jsonb_to_recordset(CAST(CAST(:rows AS TEXT) AS jsonb)) AS n (run_after_ms BIGINT, run_id BIGINT, job_id UUID, lane TEXT)
WHERE true
ON CONFLICT DO NOTHING
