-- Give new jobs their cursors.
INSERT INTO cursors (job_id, region, shard, state, timing_id, revision, cursor_ms, ticks_used, next_due_ms)
SELECT job_id, region, shard, state, timing_id, revision, cursor_ms, ticks_used, next_due_ms
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, region TEXT, shard INTEGER, state TEXT, timing_id
    BIGINT, revision INTEGER, cursor_ms BIGINT, ticks_used BIGINT, next_due_ms BIGINT)
