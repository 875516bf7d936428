-- Of the first runs of every queue of a pool that wait for nothing but a slot those that need one of these handlers, and
-- whether their jobs have ended. It looks no further than the first ones, however many there are: what stands behind them
-- comes when its turn is near.
SELECT q.*, CASE WHEN j.deleted_ms IS NOT NULL THEN 'deleted' WHEN j.state = 'cancelled' THEN 'cancelled' END AS ended
FROM (SELECT v.lane, v.priority FROM shares AS v WHERE v.pool = :pool AND v.tenant = '') AS s
CROSS JOIN queue AS q ON q.run_id IN (
    SELECT run_id FROM (
        SELECT i.run_id, i.handler FROM queue AS i
        WHERE i.pool = :pool AND i.lane = s.lane AND i.priority = s.priority AND i.gate IS NULL
        ORDER BY i.rank, i.run_id
        LIMIT :most) AS f
    WHERE f.handler IN (SELECT value FROM json_each(:handlers)))
LEFT JOIN jobs AS j ON j.job_id = q.job_id
ORDER BY q.rank, q.run_id
