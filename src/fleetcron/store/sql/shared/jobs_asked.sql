-- The job that a run is asked of, by its id or its name. Not locked: an application may keep its transaction open for
-- hours, and on PostgreSQL every edit, and the planning of all jobs, would wait for it. A run whose job is ended before
-- the transaction commits is closed by the claim that meets it.
SELECT job_id, tenant, name, state, revision, deleted_ms, shadow_ms FROM jobs
WHERE job_id = :job_id OR (tenant = :tenant AND name = :name AND deleted_ms IS NULL)
