-- The end of runs, with what their last attempt left.
UPDATE runs SET state = n.state, finished_ms = :now_ms, attempt = n.attempt, failures = n.failures, losses = n.losses,
    started_ms = coalesce(runs.started_ms, n.started_ms), reason = n.reason
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'state' AS state, value ->> 'attempt' AS attempt,
    value ->> 'failures' AS failures, value ->> 'losses' AS losses, value ->> 'started_ms' AS started_ms,
    value ->> 'reason' AS reason FROM json_each(:rows)) AS n
WHERE runs.run_id = n.run_id AND runs.finished_ms IS NULL
