-- Which runs that run or are tried again make a page, the newest first: from the leases, which are few.
SELECT l.run_id
FROM leases AS l
WHERE l.run_id < :before_id
    AND CASE WHEN l.node_id IS NOT NULL AND l.due_ms <= :now_ms THEN 'running'
             WHEN l.node_id IS NULL OR l.attempt > 1 THEN 'retrying'
             ELSE 'planned' END = :state
    AND (CAST(:tenant AS TEXT) IS NULL OR l.tenant = :tenant)
    AND (CAST(:name AS TEXT) IS NULL OR EXISTS (
        SELECT 1 FROM jobs AS j WHERE j.job_id = l.job_id AND j.name = :name))
    AND (CAST(:from_ms AS BIGINT) IS NULL OR l.scheduled_for_ms >= :from_ms)
    AND (CAST(:to_ms AS BIGINT) IS NULL OR l.scheduled_for_ms < :to_ms)
ORDER BY l.run_id DESC
LIMIT :most
