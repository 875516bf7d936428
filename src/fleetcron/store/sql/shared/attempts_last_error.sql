-- The last attempt of a run that did not succeed.
SELECT attempt, node_id, started_ms, finished_ms, outcome, error_code, error_text, trace, result, log_bytes
FROM attempts WHERE run_id = :run_id AND error_code IS NOT NULL ORDER BY attempt DESC LIMIT 1
