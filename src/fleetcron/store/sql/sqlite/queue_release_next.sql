-- Of those who wait for a shared key: the next in the same queue that may hold it beside so many others.
UPDATE queue SET gate = NULL, key = NULL, look_ms = NULL
WHERE run_id IN (
    SELECT q.run_id
    FROM (SELECT value ->> 'key' AS key, value ->> 'pool' AS pool, value ->> 'lane' AS lane, value ->> 'priority' AS
        priority, value ->> 'held' AS held, value ->> 'after_ms' AS after_ms, value ->> 'after_id' AS after_id
        FROM json_each(:rows)) AS n
    JOIN queue AS q ON q.run_id = (
        SELECT p.run_id FROM queue AS p
        WHERE p.gate = 'key' AND p.key = n.key AND p.pool = n.pool AND p.lane = n.lane AND p.priority = n.priority
            AND p.max_running > n.held AND (p.scheduled_for_ms, p.run_id) > (n.after_ms, n.after_id)
        ORDER BY p.scheduled_for_ms, p.run_id LIMIT 1
    )
)
RETURNING run_id, pool
