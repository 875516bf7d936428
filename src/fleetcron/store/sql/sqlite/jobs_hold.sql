-- A job by its id or its name, which nobody deletes or cancels until the end of the transaction.
SELECT job_id, tenant, name, state, revision, deleted_ms, shadow_ms FROM jobs
WHERE job_id = :job_id OR (tenant = :tenant AND name = :name AND deleted_ms IS NULL)
