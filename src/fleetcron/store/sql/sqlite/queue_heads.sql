-- The first runs of every queue of a pool that wait for nothing but a slot. What is due and what is not yet are read
-- apart (:until_ms is now, or as far as one may look): many that are due in a moment must not hide one that may start.
SELECT q.*, CASE WHEN j.deleted_ms IS NOT NULL THEN 'deleted' WHEN j.state = 'cancelled' THEN 'cancelled' END AS ended
FROM shares AS v
CROSS JOIN (SELECT -9000000000000000 AS after_ms, :now_ms AS until_ms UNION ALL SELECT :now_ms, :until_ms) AS s
CROSS JOIN queue AS q ON q.run_id IN (
    SELECT i.run_id FROM queue AS i
    WHERE i.pool = v.pool AND i.lane = v.lane AND i.priority = v.priority AND i.gate IS NULL
        AND i.due_ms > s.after_ms AND i.due_ms <= s.until_ms
        AND i.handler NOT IN (SELECT value FROM json_each(:lacks))
    ORDER BY i.rank, i.run_id
    LIMIT :most)
LEFT JOIN jobs AS j ON j.job_id = q.job_id
WHERE v.pool = :pool AND v.tenant = ''
