-- The history of attempts.
INSERT INTO attempts (run_id, attempt, node_id, started_ms, finished_ms, outcome, error_code, error_text, trace, result,
    log_bytes)
SELECT run_id, attempt, node_id, started_ms, finished_ms, outcome, error_code, error_text, trace, result, log_bytes
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'attempt' AS attempt, value ->> 'node_id' AS node_id,
    value ->> 'started_ms' AS started_ms, value ->> 'finished_ms' AS finished_ms, value ->> 'outcome' AS outcome,
    value ->> 'error_code' AS error_code, value ->> 'error_text' AS error_text, value ->> 'trace' AS trace,
    value ->> 'result' AS result, value ->> 'log_bytes' AS log_bytes FROM json_each(:rows)) AS n
WHERE true
ON CONFLICT DO NOTHING
