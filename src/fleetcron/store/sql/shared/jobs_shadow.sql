-- Until when a job is in shadow.
SELECT shadow_ms FROM jobs WHERE job_id = :job_id
