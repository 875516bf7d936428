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
FROM (
    SELECT value ->> 'job_id' AS job_id, value ->> 'region' AS region, value ->> 'shard' AS shard, value ->>
        'state' AS state, value ->> 'timing_id' AS timing_id, value ->> 'revision' AS revision, value ->>
        'cursor_ms' AS cursor_ms, value ->> 'ticks_used' AS ticks_used, value ->> 'next_due_ms' AS next_due_ms,
        value ->> 'seen_cursor_ms' AS seen_cursor_ms, value ->> 'seen_revision' AS seen_revision, value ->>
        'seen_state' AS seen_state
    FROM json_each(:rows)
) AS n
WHERE cursors.job_id = n.job_id AND cursors.cursor_ms = n.seen_cursor_ms AND cursors.revision = n.seen_revision
    AND cursors.state = n.seen_state
RETURNING cursors.job_id AS job_id
