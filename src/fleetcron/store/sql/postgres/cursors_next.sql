-- The next instant at which a job of these shards is due; without timings that nobody here can plan.
SELECT min(first.next_due_ms) AS next_due_ms
FROM jsonb_to_recordset(CAST(:held AS jsonb)) AS h (region TEXT, shard INTEGER)
CROSS JOIN LATERAL (
    SELECT c.next_due_ms FROM cursors AS c
    WHERE c.region = h.region AND c.shard = h.shard AND c.next_due_ms IS NOT NULL
        AND c.timing_id NOT IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:without AS jsonb)) AS v (value))
    ORDER BY c.next_due_ms LIMIT 1
) AS first
