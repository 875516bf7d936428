-- Give new jobs their cursors.
INSERT INTO cursors (job_id, region, shard, state, timing_id, revision, cursor_ms, ticks_used, next_due_ms)
SELECT job_id, region, shard, state, timing_id, revision, cursor_ms, ticks_used, next_due_ms
FROM (
    SELECT value ->> 'job_id' AS job_id, value ->> 'region' AS region, value ->> 'shard' AS shard, value ->>
        'state' AS state, value ->> 'timing_id' AS timing_id, value ->> 'revision' AS revision, value ->>
        'cursor_ms' AS cursor_ms, value ->> 'ticks_used' AS ticks_used, value ->> 'next_due_ms' AS next_due_ms
    FROM json_each(:rows)
) AS n
