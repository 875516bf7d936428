-- Write the new state of jobs whose cursor was moved in the same transaction.
UPDATE jobs
SET tenant = n.tenant,
    name = n.name,
    type = n.type,
    pool = n.pool,
    region = n.region,
    state = n.state,
    on_resume = n.on_resume,
    problem = n.problem,
    revision = n.revision,
    definition = n.definition,
    managed_by = n.managed_by,
    updated_ms = n.updated_ms,
    deleted_ms = n.deleted_ms
FROM (
    SELECT value ->> 'job_id' AS job_id, value ->> 'tenant' AS tenant, value ->> 'name' AS name, value ->> 'type'
        AS type, value ->> 'pool' AS pool, value ->> 'region' AS region, value ->> 'state' AS state, value ->>
        'on_resume' AS on_resume, value ->> 'problem' AS problem, value ->> 'revision' AS revision, value ->>
        'definition' AS definition, value ->> 'managed_by' AS managed_by, value ->> 'created_by' AS created_by,
        value ->> 'created_ms' AS created_ms, value ->> 'updated_ms' AS updated_ms, value ->> 'deleted_ms' AS
        deleted_ms
    FROM json_each(:rows)
) AS n
WHERE jobs.job_id = n.job_id
