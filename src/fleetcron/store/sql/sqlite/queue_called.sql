-- Of the other pools: the first runs of every queue that wait for these shared keys, if they were called and not
-- looked at since.
SELECT q.*
FROM json_each(:keys) AS n
JOIN shares AS v ON v.tenant = '' AND v.pool <> :pool
JOIN queue AS q ON q.run_id = (
    SELECT p.run_id FROM queue AS p
    WHERE p.gate = 'key' AND p.key = n.value AND p.pool = v.pool AND p.lane = v.lane AND p.priority = v.priority
    ORDER BY p.scheduled_for_ms, p.run_id LIMIT 1)
WHERE q.look_ms <= :now_ms
ORDER BY q.scheduled_for_ms, q.run_id
