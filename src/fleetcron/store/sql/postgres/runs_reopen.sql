-- Open dead and cancelled runs again, in a new round; only the returned ones were closed, in the round that was seen (NULL:
-- in any), and have a job that may run.
UPDATE runs SET state = 'planned', finished_ms = NULL, started_ms = NULL, failures = 0, losses = 0, round = runs.round + 1,
    lane = 'catchup', reason = NULL, discarded_ms = NULL, discarded_why = NULL, asked_by = :actor
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (run_id BIGINT, round BIGINT)
WHERE runs.run_id = n.run_id AND runs.round = coalesce(n.round, runs.round)
    AND runs.state IN ('dead', 'cancelled') AND EXISTS (
        SELECT 1 FROM jobs AS j WHERE j.job_id = runs.job_id AND j.deleted_ms IS NULL AND j.state <> 'cancelled'
            AND coalesce(j.shadow_ms, 0) <= db_now_ms())
RETURNING runs.run_id, runs.job_id, runs.run_after_ms, runs.round
