-- The answer of runs that are not held: only the returned ones had none.
UPDATE runs SET state = n.state, finished_ms = coalesce(n.at_ms, :now_ms), reason = n.reason, covered_by = n.covered_by
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (run_id BIGINT, state TEXT, reason TEXT, covered_by BIGINT,
    at_ms BIGINT)
WHERE runs.run_id = n.run_id AND runs.finished_ms IS NULL
RETURNING runs.run_id, runs.job_id, runs.scheduled_for_ms
