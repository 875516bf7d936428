-- The attempts of a run that have ended, the first one first.
SELECT attempt, node_id, started_ms, finished_ms, outcome, error_code, error_text, trace, result, log_bytes
FROM attempts WHERE run_id = :run_id ORDER BY attempt
