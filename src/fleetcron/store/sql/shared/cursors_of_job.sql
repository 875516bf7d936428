-- Where a job stands.
SELECT revision, state, cursor_ms FROM cursors WHERE job_id = :job_id
