-- How many runs wait for each of these upstream jobs, counted no farther than :most, and the tick of the one that has :front
-- others before it, if there are so many.
SELECT n.value AS key,
    (SELECT count(*) FROM (
        SELECT 1 FROM queue AS q WHERE q.gate = 'upstream' AND q.key = n.value LIMIT :most)) AS waiting,
    (SELECT q.scheduled_for_ms FROM queue AS q WHERE q.gate = 'upstream' AND q.key = n.value
     ORDER BY q.scheduled_for_ms, q.run_id LIMIT 1 OFFSET :front) AS front_ms
FROM json_each(:keys) AS n
