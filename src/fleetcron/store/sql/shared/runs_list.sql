-- Runs by filter, the newest first.
SELECT r.*, j.tenant, j.name
FROM runs AS r
JOIN jobs AS j ON j.job_id = r.job_id
WHERE (CAST(:tenant AS TEXT) IS NULL OR j.tenant = :tenant)
    AND (CAST(:name AS TEXT) IS NULL OR j.name = :name)
    AND (CAST(:state AS TEXT) IS NULL OR r.state = :state)
    AND (CAST(:from_ms AS BIGINT) IS NULL OR r.scheduled_for_ms >= :from_ms)
    AND (CAST(:to_ms AS BIGINT) IS NULL OR r.scheduled_for_ms < :to_ms)
    AND (CAST(:before_id AS BIGINT) IS NULL OR r.run_id < :before_id)
ORDER BY r.run_id DESC
LIMIT :most
