-- Which runs of a tenant make a page, the newest first.
SELECT r.run_id
FROM runs AS r
JOIN jobs AS j ON j.job_id = r.job_id
WHERE j.tenant = :tenant
    AND r.run_id < :before_id
    AND (CAST(:state AS TEXT) IS NULL OR r.state = :state)
    AND (CAST(:from_ms AS BIGINT) IS NULL OR r.scheduled_for_ms >= :from_ms)
    AND (CAST(:to_ms AS BIGINT) IS NULL OR r.scheduled_for_ms < :to_ms)
    -- without what is planned for later
    AND (CAST(:due_ms AS BIGINT) IS NULL OR r.scheduled_for_ms <= :due_ms OR r.finished_ms IS NOT NULL)
ORDER BY r.run_id DESC
LIMIT :most
