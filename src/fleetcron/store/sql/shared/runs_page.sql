-- Which runs of the fleet make a page, the newest first.
SELECT r.run_id
FROM runs AS r
WHERE r.run_id < :before_id
    AND (CAST(:state AS TEXT) IS NULL OR r.state = :state)
    AND (CAST(:from_ms AS BIGINT) IS NULL OR r.scheduled_for_ms >= :from_ms)
    AND (CAST(:to_ms AS BIGINT) IS NULL OR r.scheduled_for_ms < :to_ms)
    -- without what is planned for later
    AND (CAST(:due_ms AS BIGINT) IS NULL OR r.scheduled_for_ms <= :due_ms OR r.finished_ms IS NOT NULL)
ORDER BY r.run_id DESC
LIMIT :most
