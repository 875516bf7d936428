-- For which handlers runs of a pool are parked, each only once, however many wait.
WITH RECURSIVE waited (key) AS (
    SELECT q.key FROM queue AS q WHERE q.run_id = (
        SELECT p.run_id FROM queue AS p WHERE p.gate = 'handler' ORDER BY p.gate, p.key, p.scheduled_for_ms,
            p.run_id LIMIT 1)
    UNION ALL
    SELECT q.key FROM waited AS w JOIN queue AS q ON q.run_id = (
        SELECT p.run_id FROM queue AS p WHERE p.gate = 'handler' AND p.key > w.key
        ORDER BY p.gate, p.key, p.scheduled_for_ms, p.run_id LIMIT 1)
)
SELECT w.key FROM waited AS w
WHERE EXISTS (SELECT 1 FROM queue AS e WHERE e.gate = 'handler' AND e.key = w.key AND e.pool = :pool)
ORDER BY w.key
