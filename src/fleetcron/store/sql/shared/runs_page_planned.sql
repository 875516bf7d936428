-- Which planned runs make a page, the newest first: on their way, queued for a free slot, or held a moment early.
SELECT p.run_id
FROM (
    SELECT u.run_id, u.job_id FROM upcoming AS u
    WHERE NOT EXISTS (SELECT 1 FROM leases AS l WHERE l.run_id = u.run_id)
    UNION ALL
    SELECT q.run_id, q.job_id FROM queue AS q WHERE q.gate IS NULL AND q.leased = 0
    UNION ALL
    SELECT l.run_id, l.job_id FROM leases AS l WHERE l.node_id IS NOT NULL AND l.due_ms > :now_ms AND l.attempt = 1
) AS p
WHERE p.run_id < :before_id
    AND (CAST(:tenant AS TEXT) IS NULL OR EXISTS (
        SELECT 1 FROM jobs AS j WHERE j.job_id = p.job_id AND j.tenant = :tenant))
    AND ((CAST(:from_ms AS BIGINT) IS NULL AND CAST(:to_ms AS BIGINT) IS NULL) OR EXISTS (
        SELECT 1 FROM runs AS r WHERE r.run_id = p.run_id
            AND (CAST(:from_ms AS BIGINT) IS NULL OR r.scheduled_for_ms >= :from_ms)
            AND (CAST(:to_ms AS BIGINT) IS NULL OR r.scheduled_for_ms < :to_ms)))
ORDER BY p.run_id DESC
LIMIT :most
