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
    deleted_ms = n.deleted_ms,
    priority = n.priority,
    overlap = n.overlap,
    claim_key = n.claim_key,
    max_running = n.max_running,
    start_deadline_ms = n.start_deadline_ms,
    handler = n.handler,
    depends = n.depends,
    shadow_ms = n.shadow_ms
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, tenant TEXT, name TEXT, type TEXT, pool TEXT,
    region TEXT, state TEXT, on_resume TEXT, problem TEXT, revision INTEGER, definition JSONB, managed_by TEXT,
    created_by TEXT, created_ms BIGINT, updated_ms BIGINT, deleted_ms BIGINT, priority INTEGER, overlap TEXT,
    claim_key TEXT, max_running INTEGER, start_deadline_ms BIGINT, handler TEXT, depends INTEGER, shadow_ms BIGINT)
WHERE jobs.job_id = n.job_id
