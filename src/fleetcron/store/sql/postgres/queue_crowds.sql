-- How many runs wait for each of these upstream jobs, counted no farther than :most, and the tick of the one that has :front
-- others before it, if there are so many.
SELECT n.key, c.waiting, f.front_ms
FROM jsonb_array_elements_text(CAST(:keys AS jsonb)) AS n (key)
CROSS JOIN LATERAL (
    SELECT count(*) AS waiting FROM (
        SELECT 1 FROM queue AS q WHERE q.gate = 'upstream' AND q.key = n.key LIMIT :most
    ) AS counted
) AS c
LEFT JOIN LATERAL (
    SELECT q.scheduled_for_ms AS front_ms FROM queue AS q WHERE q.gate = 'upstream' AND q.key = n.key
    ORDER BY q.scheduled_for_ms, q.run_id LIMIT 1 OFFSET :front
) AS f ON true
