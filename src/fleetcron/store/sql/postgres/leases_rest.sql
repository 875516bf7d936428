-- Between two attempts: the key stays taken, the place of the worker is free.
UPDATE leases SET node_id = NULL, batch = NULL, attempt = n.attempt, failures = n.failures, losses = n.losses,
    due_ms = coalesce(n.due_ms, leases.due_ms), cancel = NULL, progress = NULL, note = NULL
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (run_id BIGINT, attempt INTEGER, due_ms BIGINT, failures INTEGER,
    losses INTEGER)
WHERE leases.run_id = n.run_id
