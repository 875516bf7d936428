-- The name of a job of a tenant by its id, unless it was deleted.
SELECT name FROM jobs WHERE job_id = :job_id AND tenant = :tenant AND deleted_ms IS NULL
