-- How much catch-up is on its way or waits for a worker, counted no farther than needed.
SELECT (SELECT count(*) FROM (SELECT 1 FROM upcoming WHERE lane = 'catchup' LIMIT :most) AS few)
     + (SELECT count(*) FROM (SELECT 1 FROM queue WHERE lane = 'catchup' LIMIT :most) AS more) AS runs
