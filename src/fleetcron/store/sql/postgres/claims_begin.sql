-- The row of a worker that claims; whether anybody waits for nothing but a slot, or for a limit that may have room by
-- now; and what is not the plain case: limits, parked runs whose time has come, or runs that wait for a handler. The
-- row may be renewed meanwhile; whoever declares the worker lost waits, or was first.
SELECT w.batch, t.now_ms,
    CASE WHEN EXISTS (SELECT 1 FROM queue AS o WHERE o.pool = :pool AND o.gate IS NULL)
        OR EXISTS (SELECT 1 FROM queue AS g WHERE g.gate IN ('tenant', 'quota_tenant', 'quota_type', 'rate'))
        THEN 1 ELSE 0 END AS waiting,
    CASE WHEN EXISTS (SELECT 1 FROM queue AS q WHERE q.pool = :pool AND q.look_ms <= t.now_ms) THEN 1 ELSE 0 END AS woken,
    CASE WHEN EXISTS (SELECT 1 FROM queue AS h WHERE h.gate = 'handler') THEN 1 ELSE 0 END AS unknown,
    CASE WHEN EXISTS (SELECT 1 FROM pools AS p WHERE p.pool = :pool) OR EXISTS (SELECT 1 FROM controls)
        OR EXISTS (SELECT 1 FROM tenants AS c WHERE c.max_in_flight IS NOT NULL OR c.rate_per_s IS NOT NULL)
        THEN 1 ELSE 0 END AS limited
FROM workers AS w
CROSS JOIN (SELECT db_now_ms() AS now_ms OFFSET 0) AS t
WHERE w.node_id = :node_id
FOR KEY SHARE OF w
