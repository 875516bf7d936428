-- When somebody has to look at a queue again: a run is to be queued, or a parked one looked at.
-- Without the planned runs of some jobs, a JSON list.
SELECT (SELECT min(run_after_ms) FROM upcoming WHERE job_id NOT IN
           (SELECT value FROM json_each(:without))) AS upcoming_ms,
       (SELECT min(look_ms) FROM queue WHERE look_ms IS NOT NULL AND pool IN (SELECT value FROM json_each(:pools))) AS
           look_ms
