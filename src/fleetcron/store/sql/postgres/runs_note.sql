-- What a run that is tried again has behind it.
UPDATE runs SET attempt = n.attempt, failures = n.failures, losses = n.losses,
    started_ms = coalesce(runs.started_ms, n.started_ms), reason = n.reason
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (run_id BIGINT, attempt INTEGER, failures INTEGER, losses INTEGER,
    started_ms BIGINT, reason TEXT)
WHERE runs.run_id = n.run_id AND runs.finished_ms IS NULL
