-- The history of attempts.
INSERT INTO attempts (run_id, attempt, node_id, started_ms, finished_ms, outcome, error_code, error_text, trace, result,
    log_bytes)
SELECT run_id, attempt, node_id, started_ms, finished_ms, outcome, error_code, error_text, trace, result, log_bytes
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (run_id BIGINT, attempt INTEGER, node_id TEXT, started_ms BIGINT,
    finished_ms BIGINT, outcome TEXT, error_code TEXT, error_text TEXT, trace TEXT, result TEXT, log_bytes BIGINT)
WHERE true
ON CONFLICT DO NOTHING
