-- How many runs of a pool only wait for a slot, as far as it matters.
SELECT count(*) AS runs FROM (SELECT 1 AS one FROM queue WHERE pool = :pool AND gate IS NULL LIMIT :most) AS few
