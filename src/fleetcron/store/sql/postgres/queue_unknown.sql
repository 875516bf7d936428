-- Of the first runs of every queue of a pool that wait for nothing but a slot those that need one of these handlers, and
-- whether their jobs have ended. It looks no further than the first ones, however many there are: what stands behind them
-- comes when its turn is near.
SELECT q.*, CASE WHEN j.deleted_ms IS NOT NULL THEN 'deleted' WHEN j.state = 'cancelled' THEN 'cancelled' END AS ended
FROM shares AS v
CROSS JOIN LATERAL (
    SELECT * FROM queue AS i
    WHERE i.pool = v.pool AND i.lane = v.lane AND i.priority = v.priority AND i.gate IS NULL
    ORDER BY i.rank, i.run_id
    LIMIT :most
) AS q
LEFT JOIN jobs AS j ON j.job_id = q.job_id
WHERE v.pool = :pool AND v.tenant = ''
    AND q.handler IN (SELECT value FROM jsonb_array_elements_text(CAST(:handlers AS jsonb)) AS h (value))
ORDER BY q.rank, q.run_id
