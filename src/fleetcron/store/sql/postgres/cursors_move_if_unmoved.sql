-- Move the cursors of jobs that still stand where the change was decided; only the returned ones moved.
UPDATE cursors
SET region = n.region,
    shard = n.shard,
    state = n.state,
    timing_id = n.timing_id,
    revision = n.revision,
    cursor_ms = n.cursor_ms,
    ticks_used = n.ticks_used,
    next_due_ms = n.next_due_ms
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, region TEXT, shard INTEGER, state TEXT, timing_id
    BIGINT, revision INTEGER, cursor_ms BIGINT, ticks_used BIGINT, next_due_ms BIGINT, seen_cursor_ms BIGINT,
    seen_revision INTEGER, seen_state TEXT)
WHERE cursors.job_id = n.job_id AND cursors.cursor_ms = n.seen_cursor_ms AND cursors.revision = n.seen_revision
    AND cursors.state = n.seen_state
RETURNING cursors.job_id AS job_id
