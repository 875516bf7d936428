-- Open dead and cancelled runs again, in a new round; only the returned ones were closed, and have a job that may run.
UPDATE runs SET state = 'planned', finished_ms = NULL, started_ms = NULL, failures = 0, losses = 0, round = round + 1,
    lane = 'catchup', reason = NULL, discarded_ms = NULL, discarded_why = NULL, asked_by = :actor
WHERE run_id IN (SELECT value FROM json_each(:ids))
    AND state IN ('dead', 'cancelled') AND EXISTS (
        SELECT 1 FROM jobs AS j WHERE j.job_id = runs.job_id AND j.deleted_ms IS NULL AND j.state <> 'cancelled'
            AND coalesce(j.shadow_ms, 0) <= db_now_ms())
RETURNING run_id, job_id, run_after_ms, round
