-- How many catch-up runs are on their way, as far as it matters.
SELECT count(*) AS runs FROM (SELECT 1 AS one FROM upcoming WHERE lane = 'catchup' LIMIT :most) AS few
