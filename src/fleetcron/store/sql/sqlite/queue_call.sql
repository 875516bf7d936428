-- It may be their turn: the first runs of every queue that wait for these shared keys are to be looked at, from now on.
-- They stay where they are until a claim of their pool looks, so that others can see whose turn it is. Whoever was
-- called before and was not looked at since is not called again: his pool has no worker, and nobody waits for him twice.
WITH waited AS MATERIALIZED (
    SELECT value AS key FROM json_each(:keys)
    WHERE EXISTS (SELECT 1 FROM queue AS e WHERE e.gate = 'key' AND e.key = value)
)
UPDATE queue SET look_ms = :now_ms
WHERE (look_ms IS NULL OR look_ms > :now_ms) AND run_id IN (
    SELECT q.run_id
    FROM waited AS w
    JOIN shares AS v ON v.tenant = ''
    JOIN queue AS q ON q.run_id IN (
        SELECT p.run_id FROM queue AS p
        WHERE p.gate = 'key' AND p.key = w.key AND p.pool = v.pool AND p.lane = v.lane AND p.priority = v.priority
        ORDER BY p.scheduled_for_ms, p.run_id LIMIT :most
    )
)
RETURNING run_id, pool
