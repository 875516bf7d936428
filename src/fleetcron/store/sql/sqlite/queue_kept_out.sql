-- The first runs of every queue that wait for these shared keys because so many hold them, and are older than others
-- that might hold them too.
SELECT q.*
FROM (SELECT value ->> 'key' AS key, value ->> 'held' AS held, value ->> 'before_ms' AS before_ms,
    value ->> 'before_id' AS before_id FROM json_each(:rows)) AS n
JOIN shares AS v ON v.tenant = ''
JOIN queue AS q ON q.run_id = (
    SELECT p.run_id FROM queue AS p
    WHERE p.gate = 'key' AND p.key = n.key AND p.pool = v.pool AND p.lane = v.lane AND p.priority = v.priority
        AND p.max_running <= n.held AND (p.scheduled_for_ms, p.run_id) < (n.before_ms, n.before_id)
    ORDER BY p.scheduled_for_ms, p.run_id LIMIT 1)
ORDER BY q.scheduled_for_ms, q.run_id
