-- How many runs are planned for later, counted among the first of all that are on their way: a look, not a walk.
SELECT count(*) AS looked,
    sum(CASE WHEN r.scheduled_for_ms > :now_ms
            AND (CAST(:tenant AS TEXT) IS NULL OR j.tenant = :tenant)
            AND (CAST(:name AS TEXT) IS NULL OR j.name = :name) THEN 1 ELSE 0 END) AS runs
FROM (
    SELECT u.run_id FROM upcoming AS u WHERE u.run_after_ms > :now_ms ORDER BY u.run_after_ms, u.run_id LIMIT :most
) AS coming
JOIN runs AS r ON r.run_id = coming.run_id
JOIN jobs AS j ON j.job_id = r.job_id
