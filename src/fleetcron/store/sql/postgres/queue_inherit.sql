-- Runs that stand for others which leave the queue take the best of their places, if it is in the same queue.
UPDATE queue SET rank = n.rank
FROM (
    SELECT h.heir, min(q.rank) AS rank
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS h (run_id BIGINT, heir BIGINT)
    JOIN queue AS q ON q.run_id = h.run_id
    JOIN queue AS s ON s.run_id = h.heir AND s.pool = q.pool AND s.lane = q.lane AND s.priority = q.priority
    GROUP BY h.heir
) AS n
WHERE queue.run_id = n.heir AND queue.rank > n.rank
