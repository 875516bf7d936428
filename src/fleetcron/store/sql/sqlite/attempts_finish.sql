-- The end of runs: their last attempts, what these left, and the keys and places that they give back.
INSERT INTO attempts (run_id, attempt, node_id, started_ms, finished_ms, outcome, error_code, error_text, trace, result,
    log_bytes)
SELECT run_id, attempt, node_id, started_ms, finished_ms, outcome, error_code, error_text, trace, result, log_bytes
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'attempt' AS attempt, value ->> 'node_id' AS node_id,
    value ->> 'started_ms' AS started_ms, value ->> 'finished_ms' AS finished_ms, value ->> 'outcome' AS outcome,
    value ->> 'error_code' AS error_code, value ->> 'error_text' AS error_text, value ->> 'trace' AS trace,
    value ->> 'result' AS result, value ->> 'log_bytes' AS log_bytes FROM json_each(:rows)) AS n
WHERE true
ON CONFLICT DO NOTHING;
UPDATE runs SET state = n.state, finished_ms = :now_ms, attempt = n.attempt, failures = n.failures, losses = n.losses,
    started_ms = coalesce(runs.started_ms, n.started_ms), reason = n.reason
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'state' AS state, value ->> 'attempt' AS attempt,
    value ->> 'failures' AS failures, value ->> 'losses' AS losses, value ->> 'started_ms' AS started_ms,
    value ->> 'reason' AS reason FROM json_each(:rows)) AS n
WHERE runs.run_id = n.run_id AND runs.finished_ms IS NULL;
DELETE FROM leases WHERE run_id IN (SELECT value ->> 'run_id' FROM json_each(:rows))
