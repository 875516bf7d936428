-- Take the runs that are due within a moment, with what decides their place in the queue. The :first and the :last of
-- them are looked at; each queue and tenant gives its first one, then each its second: where more is seen than is taken,
-- nobody's few stand behind the many of another. Without some jobs, a JSON list.
CREATE TEMP TABLE IF NOT EXISTS taken (run_id INTEGER PRIMARY KEY, due_ms INTEGER);
DELETE FROM temp.taken;
INSERT INTO temp.taken
SELECT run_id, run_after_ms FROM (
    SELECT s.run_id, s.run_after_ms,
        row_number() OVER (PARTITION BY j.pool, s.lane, j.priority, j.tenant ORDER BY s.run_after_ms, s.run_id) AS turn
    FROM (
        SELECT * FROM (SELECT run_after_ms, run_id, job_id, lane FROM upcoming WHERE run_after_ms <= :until_ms
            AND job_id NOT IN (SELECT value FROM json_each(:without))
            ORDER BY run_after_ms, run_id LIMIT :first)
        UNION
        SELECT * FROM (SELECT run_after_ms, run_id, job_id, lane FROM upcoming WHERE run_after_ms <= :until_ms
            AND job_id NOT IN (SELECT value FROM json_each(:without))
            ORDER BY run_after_ms DESC, run_id DESC LIMIT :last)) AS s
    LEFT JOIN jobs AS j ON j.job_id = s.job_id)
ORDER BY turn, run_after_ms, run_id
LIMIT :most;
DELETE FROM upcoming WHERE (run_after_ms, run_id) IN (SELECT due_ms, run_id FROM temp.taken);
SELECT r.run_id, t.due_ms, j.pool, r.lane, j.priority, j.tenant, coalesce(w.weight, 1) AS weight,
    r.job_id, r.scheduled_for_ms,
    CASE WHEN r.kind = 'tick' AND r.lane = 'live' AND r.round = 0 AND l.run_id IS NULL THEN 1 ELSE 0 END AS fresh_tick
FROM temp.taken AS t
JOIN runs AS r ON r.run_id = t.run_id AND r.finished_ms IS NULL
JOIN jobs AS j ON j.job_id = r.job_id
LEFT JOIN leases AS l ON l.run_id = t.run_id
LEFT JOIN tenants AS w ON w.tenant = j.tenant
WHERE l.node_id IS NULL
ORDER BY t.due_ms, r.scheduled_for_ms, r.run_id
