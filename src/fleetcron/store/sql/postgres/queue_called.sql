-- Of the other pools: the first runs of every queue that wait for these shared keys, if they were called and not
-- looked at since.
SELECT f.*
FROM jsonb_array_elements_text(CAST(:keys AS jsonb)) AS n (key)
JOIN shares AS v ON v.tenant = '' AND v.pool <> :pool
CROSS JOIN LATERAL (
    SELECT * FROM queue AS p
    WHERE p.gate = 'key' AND p.key = n.key AND p.pool = v.pool AND p.lane = v.lane AND p.priority = v.priority
    ORDER BY p.scheduled_for_ms, p.run_id LIMIT 1
) AS f
WHERE f.look_ms <= :now_ms
ORDER BY f.scheduled_for_ms, f.run_id
