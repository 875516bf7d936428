-- Create jobs whose names are free; only the returned ones were created.
INSERT INTO jobs (job_id, tenant, name, type, pool, region, state, on_resume, problem, revision, definition,
    managed_by, created_by, created_ms, updated_ms, deleted_ms, priority, overlap, claim_key, max_running,
    start_deadline_ms, handler, depends, shadow_ms)
SELECT job_id, tenant, name, type, pool, region, state, on_resume, problem, revision, definition, managed_by,
    created_by, created_ms, updated_ms, deleted_ms, priority, overlap, claim_key, max_running, start_deadline_ms,
    handler, depends, shadow_ms
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'tenant' AS tenant, value ->> 'name' AS name,
    value ->> 'type' AS type, value ->> 'pool' AS pool, value ->> 'region' AS region, value ->> 'state' AS state,
    value ->> 'on_resume' AS on_resume, value ->> 'problem' AS problem, value ->> 'revision' AS revision,
    value ->> 'definition' AS definition, value ->> 'managed_by' AS managed_by, value ->> 'created_by' AS created_by,
    value ->> 'created_ms' AS created_ms, value ->> 'updated_ms' AS updated_ms, value ->> 'deleted_ms' AS deleted_ms,
    value ->> 'priority' AS priority, value ->> 'overlap' AS overlap, value ->> 'claim_key' AS claim_key,
    value ->> 'max_running' AS max_running, value ->> 'start_deadline_ms' AS start_deadline_ms,
    value ->> 'handler' AS handler, value ->> 'depends' AS depends,
    value ->> 'shadow_ms' AS shadow_ms FROM json_each(:rows)) AS n
WHERE true
ON CONFLICT DO NOTHING
RETURNING job_id
