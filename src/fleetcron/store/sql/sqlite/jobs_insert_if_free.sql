-- Create jobs whose names are free; only the returned ones were created.
INSERT INTO jobs (job_id, tenant, name, type, pool, region, state, on_resume, problem, revision, definition,
    managed_by, created_by, created_ms, updated_ms, deleted_ms)
SELECT job_id, tenant, name, type, pool, region, state, on_resume, problem, revision, definition, managed_by,
    created_by, created_ms, updated_ms, deleted_ms
FROM (
    SELECT value ->> 'job_id' AS job_id, value ->> 'tenant' AS tenant, value ->> 'name' AS name, value ->> 'type'
        AS type, value ->> 'pool' AS pool, value ->> 'region' AS region, value ->> 'state' AS state, value ->>
        'on_resume' AS on_resume, value ->> 'problem' AS problem, value ->> 'revision' AS revision, value ->>
        'definition' AS definition, value ->> 'managed_by' AS managed_by, value ->> 'created_by' AS created_by,
        value ->> 'created_ms' AS created_ms, value ->> 'updated_ms' AS updated_ms, value ->> 'deleted_ms' AS
        deleted_ms
    FROM json_each(:rows)
) AS n
WHERE true
ON CONFLICT DO NOTHING
RETURNING job_id
