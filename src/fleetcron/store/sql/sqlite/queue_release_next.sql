-- Of those who wait for a shared key: the next in the same queue that may hold it beside so many others. Nobody who was
-- looked at just now (:parked), nor who stands in line behind an earlier run of its own job: it would only be parked again,
-- one by one, however long that line is. Who is the first of each line is asked once: for each run it would be one look
-- at all lines.
WITH following AS MATERIALIZED (
    SELECT value ->> 'key' AS key, value ->> 'pool' AS pool, value ->> 'lane' AS lane, value ->> 'priority' AS priority,
        value ->> 'held' AS held, value ->> 'after_ms' AS after_ms, value ->> 'after_id' AS after_id
    FROM json_each(:rows)
), heads AS MATERIALIZED (
    SELECT l.run_id FROM (
        SELECT e.run_id, row_number() OVER (PARTITION BY e.claim_key, e.job_id ORDER BY e.scheduled_for_ms, e.run_id) AS place
        FROM queue AS e
        WHERE e.overlap = 'queue' AND e.claim_key IN (SELECT f.key FROM following AS f WHERE f.held = 0)
    ) AS l
    WHERE l.place = 1
)
UPDATE queue SET gate = NULL, key = NULL, look_ms = NULL
WHERE run_id IN (
    SELECT q.run_id
    FROM following AS n
    JOIN queue AS q ON q.run_id = (
        SELECT p.run_id FROM queue AS p
        WHERE p.gate = 'key' AND p.key = n.key AND p.pool = n.pool AND p.lane = n.lane AND p.priority = n.priority
            AND p.max_running > n.held AND (p.scheduled_for_ms, p.run_id) > (n.after_ms, n.after_id)
            AND (p.overlap <> 'queue' OR p.run_id IN (SELECT h.run_id FROM heads AS h))
            AND p.run_id NOT IN (SELECT value FROM json_each(:parked))
        ORDER BY p.scheduled_for_ms, p.run_id LIMIT 1
    )
)
RETURNING run_id, pool
