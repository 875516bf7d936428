-- The run that a client has asked for under its key.
SELECT run_id, scheduled_for_ms, payload FROM runs WHERE job_id = :job_id AND asked_key = :key
