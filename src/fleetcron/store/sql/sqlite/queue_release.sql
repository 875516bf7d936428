-- Let the first runs of every queue that wait for these be looked at again: of all pools and lanes, or of one; all, or
-- what is due; of all ticks, or of those from an instant on.
WITH waited AS MATERIALIZED (
    SELECT value ->> 'gate' AS gate, value ->> 'key' AS key, coalesce(value ->> 'from_ms', -4611686018427387904) AS from_ms
    FROM json_each(:rows)
    WHERE EXISTS (SELECT 1 FROM queue AS e WHERE e.gate = value ->> 'gate' AND e.key = value ->> 'key')
)
UPDATE queue SET gate = NULL, key = NULL, look_ms = NULL
WHERE run_id IN (
    SELECT q.run_id
    FROM waited AS w
    JOIN shares AS v ON v.tenant = '' AND (:pool IS NULL OR v.pool = :pool) AND (:lane IS NULL OR v.lane = :lane)
    JOIN queue AS q ON q.run_id IN (
        SELECT p.run_id FROM queue AS p
        WHERE p.gate = w.gate AND p.key = w.key AND p.pool = v.pool AND p.lane = v.lane AND p.priority = v.priority
            AND p.scheduled_for_ms >= w.from_ms AND (:due_ms IS NULL OR p.due_ms <= :due_ms)
        ORDER BY p.scheduled_for_ms, p.run_id LIMIT :most
    )
)
RETURNING run_id, pool
