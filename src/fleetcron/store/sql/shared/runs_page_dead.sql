-- Which dead runs make a page, the newest first: from the index that has only them.
SELECT r.run_id
FROM runs AS r
WHERE r.dead = 1 AND r.run_id < :before_id
    AND (CAST(:tenant AS TEXT) IS NULL OR EXISTS (
        SELECT 1 FROM jobs AS j WHERE j.job_id = r.job_id AND j.tenant = :tenant))
    AND (CAST(:from_ms AS BIGINT) IS NULL OR r.scheduled_for_ms >= :from_ms)
    AND (CAST(:to_ms AS BIGINT) IS NULL OR r.scheduled_for_ms < :to_ms)
ORDER BY r.run_id DESC
LIMIT :most
