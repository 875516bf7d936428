-- The answer of runs that are not held: only the returned ones had none.
UPDATE runs SET state = n.state, finished_ms = coalesce(n.at_ms, :now_ms), reason = n.reason, covered_by = n.covered_by
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'state' AS state, value ->> 'reason' AS reason,
    value ->> 'covered_by' AS covered_by, value ->> 'at_ms' AS at_ms FROM json_each(:rows)) AS n
WHERE runs.run_id = n.run_id AND runs.finished_ms IS NULL
RETURNING runs.run_id, runs.job_id, runs.scheduled_for_ms
