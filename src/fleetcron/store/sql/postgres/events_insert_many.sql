-- Note what left the normal path, many at once.
INSERT INTO events (at_ms, kind, count, job_id, node_id, actor, detail)
SELECT db_now_ms(), kind, count, job_id, node_id, actor, detail
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (kind TEXT, count BIGINT, job_id UUID, node_id TEXT, actor TEXT,
    detail JSONB)
