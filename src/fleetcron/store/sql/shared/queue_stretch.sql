-- Where a stretch of the queue ends, in the order of the runs.
SELECT max(run_id) AS last_id, count(*) AS runs FROM (
    SELECT run_id FROM queue WHERE run_id > :after_id ORDER BY run_id LIMIT :most) AS few
