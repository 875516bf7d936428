-- Remove the cursors of jobs that are deleted; only the returned ones were where the change was decided.
DELETE FROM cursors
USING jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, seen_cursor_ms BIGINT, seen_revision INTEGER,
    seen_state TEXT)
WHERE cursors.job_id = n.job_id AND cursors.cursor_ms = n.seen_cursor_ms AND cursors.revision = n.seen_revision
    AND cursors.state = n.seen_state
RETURNING cursors.job_id AS job_id
