-- The first runs of every queue of a pool that wait for nothing but a slot. What is due and what is not yet are read
-- apart (:until_ms is now, or as far as one may look): many that are due in a moment must not hide one that may start.
-- What is due is read in the order of ranks (the plus keeps it off the index that begins with due_ms, and so from sorting
-- all that is due), what is not yet in the order of its instants: each from an index, as far as the limit.
SELECT q.*, CASE WHEN j.deleted_ms IS NOT NULL THEN 'deleted' WHEN j.state = 'cancelled' THEN 'cancelled' END AS ended
FROM (SELECT v.lane, v.priority FROM shares AS v WHERE v.pool = :pool AND v.tenant = '') AS s
CROSS JOIN queue AS q ON q.run_id IN (
    SELECT run_id FROM (
        SELECT i.run_id FROM queue AS i
        WHERE i.pool = :pool AND i.lane = s.lane AND i.priority = s.priority AND i.gate IS NULL
            AND +i.due_ms <= :now_ms AND i.handler NOT IN (SELECT value FROM json_each(:lacks))
        ORDER BY i.rank, i.run_id
        LIMIT :most)
    UNION ALL
    SELECT run_id FROM (
        SELECT i.run_id FROM queue AS i
        WHERE i.pool = :pool AND i.lane = s.lane AND i.priority = s.priority AND i.gate IS NULL
            AND i.due_ms > :now_ms AND i.due_ms <= :until_ms AND i.handler NOT IN (SELECT value FROM json_each(:lacks))
        ORDER BY i.due_ms, i.rank, i.run_id
        LIMIT :most))
LEFT JOIN jobs AS j ON j.job_id = q.job_id
