-- Between two attempts: the key stays taken, the place of the worker is free.
UPDATE leases SET node_id = NULL, batch = NULL, attempt = n.attempt, failures = n.failures, losses = n.losses,
    due_ms = coalesce(n.due_ms, leases.due_ms), cancel = NULL, progress = NULL, note = NULL
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'attempt' AS attempt, value ->> 'due_ms' AS due_ms,
    value ->> 'failures' AS failures, value ->> 'losses' AS losses FROM json_each(:rows)) AS n
WHERE leases.run_id = n.run_id
