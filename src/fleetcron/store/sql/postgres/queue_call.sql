-- It may be their turn: the first runs of every queue that wait for these shared keys are to be looked at, from now on.
-- They stay where they are until a claim of their pool looks, so that others can see whose turn it is. Whoever was
-- called before and was not looked at since is not called again: his pool has no worker, and nobody waits for him twice.
-- Locked and materialised: as in queue_release.
WITH waited AS MATERIALIZED (
    SELECT n.key FROM jsonb_array_elements_text(CAST(:keys AS jsonb)) AS n (key)
    WHERE EXISTS (SELECT 1 FROM queue AS e WHERE e.gate = 'key' AND e.key = n.key)
), first AS MATERIALIZED (
    SELECT f.run_id
    FROM waited AS w
    JOIN shares AS v ON v.tenant = ''
    CROSS JOIN LATERAL (
        SELECT p.run_id FROM queue AS p
        WHERE p.gate = 'key' AND p.key = w.key AND p.pool = v.pool AND p.lane = v.lane AND p.priority = v.priority
        ORDER BY p.scheduled_for_ms, p.run_id LIMIT :most FOR UPDATE SKIP LOCKED
    ) AS f
)
UPDATE queue AS q SET look_ms = :now_ms
FROM first
WHERE q.run_id = first.run_id AND (q.look_ms IS NULL OR q.look_ms > :now_ms)
RETURNING q.run_id, q.pool
