-- Keep who changed a job, when, and from what to what.
INSERT INTO job_revisions (job_id, revision, at_ms, actor, action, timing_id, before, after)
SELECT job_id, revision, at_ms, actor, action, timing_id, before, after
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, revision INTEGER, at_ms BIGINT, actor TEXT, action
    TEXT, timing_id BIGINT, before JSONB, after JSONB)
WHERE true
ON CONFLICT DO NOTHING
