-- The first runs of every queue that wait for these shared keys because so many hold them, and are older than others
-- that might hold them too.
SELECT f.*
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (key TEXT, held INTEGER, before_ms BIGINT, before_id BIGINT)
JOIN shares AS v ON v.tenant = ''
CROSS JOIN LATERAL (
    SELECT * FROM queue AS p
    WHERE p.gate = 'key' AND p.key = n.key AND p.pool = v.pool AND p.lane = v.lane AND p.priority = v.priority
        AND p.max_running <= n.held AND (p.scheduled_for_ms, p.run_id) < (n.before_ms, n.before_id)
    ORDER BY p.scheduled_for_ms, p.run_id LIMIT 1
) AS f
ORDER BY f.scheduled_for_ms, f.run_id
