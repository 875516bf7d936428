-- Of those who wait for a shared key: the next in the same queue that may hold it beside so many others.
-- Materialised: as in queue_release.
WITH first AS MATERIALIZED (
    SELECT f.run_id
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (key TEXT, pool TEXT, lane TEXT, priority INTEGER, held INTEGER,
        after_ms BIGINT, after_id BIGINT)
    CROSS JOIN LATERAL (
        SELECT p.run_id FROM queue AS p
        WHERE p.gate = 'key' AND p.key = n.key AND p.pool = n.pool AND p.lane = n.lane AND p.priority = n.priority
            AND p.max_running > n.held AND (p.scheduled_for_ms, p.run_id) > (n.after_ms, n.after_id)
        ORDER BY p.scheduled_for_ms, p.run_id LIMIT 1 FOR UPDATE SKIP LOCKED
    ) AS f
)
UPDATE queue AS q SET gate = NULL, key = NULL, look_ms = NULL
FROM first
WHERE q.run_id = first.run_id
RETURNING q.run_id, q.pool
