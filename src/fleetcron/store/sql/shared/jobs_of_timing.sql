-- The first job of a timing, by name.
SELECT j.tenant, j.name
FROM cursors AS c
JOIN jobs AS j ON j.job_id = c.job_id
WHERE c.timing_id = :timing_id
ORDER BY j.tenant, j.name
LIMIT 1
