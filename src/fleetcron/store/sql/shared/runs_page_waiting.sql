-- Which runs that wait for something make a page, the newest first: from those parked in the queue.
SELECT q.run_id
FROM queue AS q
WHERE q.gate IS NOT NULL AND q.leased = 0 AND q.run_id < :before_id
    AND (CAST(:tenant AS TEXT) IS NULL OR q.tenant = :tenant)
    AND (CAST(:name AS TEXT) IS NULL OR EXISTS (
        SELECT 1 FROM jobs AS j WHERE j.job_id = q.job_id AND j.name = :name))
    AND (CAST(:from_ms AS BIGINT) IS NULL OR q.scheduled_for_ms >= :from_ms)
    AND (CAST(:to_ms AS BIGINT) IS NULL OR q.scheduled_for_ms < :to_ms)
ORDER BY q.run_id DESC
LIMIT :most
