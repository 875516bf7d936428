-- How many dead letters are like that, and how many of them have a job that may still run.
SELECT count(*) AS runs, count(
    CASE WHEN j.deleted_ms IS NULL AND j.state <> 'cancelled' AND coalesce(j.shadow_ms, 0) <= db_now_ms() THEN 1 END) AS open, db_now_ms() AS now_ms
FROM runs AS r
JOIN jobs AS j ON j.job_id = r.job_id
LEFT JOIN attempts AS a ON a.run_id = r.run_id AND a.attempt = r.attempt
WHERE r.dead = 1 AND r.discarded_ms IS NULL
    AND (CAST(:tenant AS TEXT) IS NULL OR j.tenant = :tenant)
    AND (CAST(:name AS TEXT) IS NULL OR j.name = :name)
    AND (CAST(:type AS TEXT) IS NULL OR j.type = :type)
    AND (CAST(:error AS TEXT) IS NULL OR a.error_code = :error)
    AND (CAST(:from_ms AS BIGINT) IS NULL OR r.finished_ms >= :from_ms)
    AND (CAST(:to_ms AS BIGINT) IS NULL OR r.finished_ms < :to_ms)
