-- Let the first runs of every queue that wait for these be looked at again: of all pools and lanes, or of one; all, or
-- what is due; of all ticks, or of those from an instant on. What somebody else has locked is being looked at; to wait for it here would be a deadlock with a claim
-- that waits for us. Materialised: on the inner side of a join it would be read again, and release more than the most.
-- Distinct: all are found before the first is released. Two places of one line may have the same first ones, and what
-- this statement has changed already would be passed over as if it were locked: the second place would release others.
WITH waited AS MATERIALIZED (
    SELECT n.gate, n.key, coalesce(n.from_ms, -4611686018427387904) AS from_ms
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (gate TEXT, key TEXT, from_ms BIGINT)
    WHERE EXISTS (SELECT 1 FROM queue AS e WHERE e.gate = n.gate AND e.key = n.key)
), first AS MATERIALIZED (
    SELECT DISTINCT f.run_id
    FROM waited AS w
    JOIN shares AS v ON v.tenant = '' AND (CAST(:pool AS TEXT) IS NULL OR v.pool = :pool)
        AND (CAST(:lane AS TEXT) IS NULL OR v.lane = :lane)
    CROSS JOIN LATERAL (
        SELECT p.run_id FROM queue AS p
        WHERE p.gate = w.gate AND p.key = w.key AND p.pool = v.pool AND p.lane = v.lane AND p.priority = v.priority
            AND p.scheduled_for_ms >= w.from_ms AND (CAST(:due_ms AS BIGINT) IS NULL OR p.due_ms <= :due_ms)
        ORDER BY p.scheduled_for_ms, p.run_id LIMIT :most FOR UPDATE SKIP LOCKED
    ) AS f
)
UPDATE queue AS q SET gate = NULL, key = NULL, look_ms = NULL
FROM first
WHERE q.run_id = first.run_id
RETURNING q.run_id, q.pool
