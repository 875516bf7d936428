-- The end of runs: their last attempts, what these left, and the keys and places that they give back.
WITH n AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (run_id BIGINT, attempt INTEGER, node_id TEXT,
        started_ms BIGINT, finished_ms BIGINT, outcome TEXT, error_code TEXT, error_text TEXT, trace TEXT, result TEXT,
        log_bytes BIGINT, state TEXT, failures INTEGER, losses INTEGER, reason TEXT)
), tried AS (
    INSERT INTO attempts (run_id, attempt, node_id, started_ms, finished_ms, outcome, error_code, error_text, trace,
        result, log_bytes)
    SELECT run_id, attempt, node_id, started_ms, finished_ms, outcome, error_code, error_text, trace, result, log_bytes
    FROM n
    ON CONFLICT DO NOTHING
), ended AS (
    UPDATE runs SET state = n.state, finished_ms = :now_ms, attempt = n.attempt, failures = n.failures,
        losses = n.losses, started_ms = coalesce(runs.started_ms, n.started_ms), reason = n.reason
    FROM n
    WHERE runs.run_id = n.run_id AND runs.finished_ms IS NULL
)
DELETE FROM leases USING n WHERE leases.run_id = n.run_id
