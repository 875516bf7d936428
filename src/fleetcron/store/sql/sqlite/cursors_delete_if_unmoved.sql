-- Remove the cursors of jobs that are deleted; only the returned ones were where the change was decided.
DELETE FROM cursors
WHERE (job_id, cursor_ms, revision, state) IN (
    SELECT value ->> 'job_id', value ->> 'seen_cursor_ms', value ->> 'seen_revision', value ->> 'seen_state'
    FROM json_each(:rows)
)
RETURNING job_id
