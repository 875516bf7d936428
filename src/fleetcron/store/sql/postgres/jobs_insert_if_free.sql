-- Create jobs whose names are free; only the returned ones were created.
INSERT INTO jobs (job_id, tenant, name, type, pool, region, state, on_resume, problem, revision, definition,
    managed_by, created_by, created_ms, updated_ms, deleted_ms, priority, overlap, claim_key, max_running,
    start_deadline_ms, handler, depends, shadow_ms)
SELECT job_id, tenant, name, type, pool, region, state, on_resume, problem, revision, definition, managed_by,
    created_by, created_ms, updated_ms, deleted_ms, priority, overlap, claim_key, max_running, start_deadline_ms,
    handler, depends, shadow_ms
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, tenant TEXT, name TEXT, type TEXT, pool TEXT,
    region TEXT, state TEXT, on_resume TEXT, problem TEXT, revision INTEGER, definition JSONB, managed_by TEXT,
    created_by TEXT, created_ms BIGINT, updated_ms BIGINT, deleted_ms BIGINT, priority INTEGER, overlap TEXT,
    claim_key TEXT, max_running INTEGER, start_deadline_ms BIGINT, handler TEXT, depends INTEGER, shadow_ms BIGINT)
WHERE true
ON CONFLICT DO NOTHING
RETURNING job_id
