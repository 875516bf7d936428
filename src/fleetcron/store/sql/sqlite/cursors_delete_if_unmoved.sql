-- Remove the cursors of jobs that are deleted; only the returned ones were where the change was decided.
DELETE FROM cursors
WHERE EXISTS (
    SELECT 1 FROM (
    SELECT value ->> 'job_id' AS job_id, value ->> 'seen_cursor_ms' AS seen_cursor_ms, value ->> 'seen_revision'
        AS seen_revision, value ->> 'seen_state' AS seen_state
    FROM json_each(:rows)
) AS n
    WHERE cursors.job_id = n.job_id AND cursors.cursor_ms = n.seen_cursor_ms AND cursors.revision = n.seen_revision
        AND cursors.state = n.seen_state
)
RETURNING job_id
