-- Where the jobs stand that are due by the horizon: one row for all jobs with the same timing and cursor;
-- without timings (a JSON list) that nobody here can plan.
-- Each shard gives its first ones in the order of the index, so that the cost is what is read, not what is due.
SELECT due.timing_id, due.cursor_ms, due.ticks_used, count(*) AS jobs
FROM jsonb_to_recordset(CAST(:held AS jsonb)) AS h (region TEXT, shard INTEGER)
CROSS JOIN LATERAL (
    SELECT c.timing_id, c.cursor_ms, c.ticks_used
    FROM cursors AS c
    WHERE c.region = h.region AND c.shard = h.shard AND c.next_due_ms <= :horizon_ms
        AND c.timing_id NOT IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:without AS jsonb)) AS v (value))
    ORDER BY c.next_due_ms
    LIMIT :per_shard
) AS due
GROUP BY due.timing_id, due.cursor_ms, due.ticks_used
ORDER BY due.timing_id, due.cursor_ms, due.ticks_used
