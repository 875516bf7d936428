-- Switch a control.
INSERT INTO controls (scope, name, percent, retries, backoff, until_ms, reason, actor, updated_ms)
VALUES (:scope, :name, :percent, :retries, :backoff, :until_ms, :reason, :actor, :now_ms)
ON CONFLICT (scope, name) DO UPDATE SET percent = excluded.percent, retries = excluded.retries,
    backoff = excluded.backoff, until_ms = excluded.until_ms, reason = excluded.reason, actor = excluded.actor,
    updated_ms = excluded.updated_ms
