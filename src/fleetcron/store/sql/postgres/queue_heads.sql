-- The first runs of every queue of a pool that wait for nothing but a slot. What is due and what is not yet are read
-- apart (:until_ms is now, or as far as one may look): many that are due in a moment must not hide one that may start.
-- What is due is read in the order of ranks (the sum keeps it off the index that begins with due_ms, and so from sorting
-- all that is due), what is not yet in the order of its instants: each from an index, as far as the limit.
SELECT q.*, CASE WHEN j.deleted_ms IS NOT NULL THEN 'deleted' WHEN j.state = 'cancelled' THEN 'cancelled' END AS ended
FROM shares AS v
CROSS JOIN LATERAL (
    (SELECT * FROM queue AS i
    WHERE i.pool = v.pool AND i.lane = v.lane AND i.priority = v.priority AND i.gate IS NULL
        AND i.due_ms + 0 <= CAST(:now_ms AS BIGINT)
        AND i.handler NOT IN (SELECT value FROM jsonb_array_elements_text(CAST(:lacks AS jsonb)) AS l (value))
    ORDER BY i.rank, i.run_id
    LIMIT :most)
    UNION ALL
    (SELECT * FROM queue AS i
    WHERE i.pool = v.pool AND i.lane = v.lane AND i.priority = v.priority AND i.gate IS NULL
        AND i.due_ms > CAST(:now_ms AS BIGINT) AND i.due_ms <= CAST(:until_ms AS BIGINT)
        AND i.handler NOT IN (SELECT value FROM jsonb_array_elements_text(CAST(:lacks AS jsonb)) AS l (value))
    ORDER BY i.due_ms, i.rank, i.run_id
    LIMIT :most)
) AS q
LEFT JOIN jobs AS j ON j.job_id = q.job_id
WHERE v.pool = :pool AND v.tenant = ''
