-- Which runs of a job make a page, the newest first: from the index of the job, not from all runs backwards.
WITH named AS MATERIALIZED (
    SELECT j.job_id FROM jobs AS j WHERE j.name = :name AND (CAST(:tenant AS TEXT) IS NULL OR j.tenant = :tenant)
), mine AS MATERIALIZED (
    SELECT r.run_id, r.state, r.scheduled_for_ms, r.finished_ms
    FROM runs AS r WHERE r.job_id IN (SELECT n.job_id FROM named AS n) AND r.kind <> 'manual'
    UNION ALL
    SELECT r.run_id, r.state, r.scheduled_for_ms, r.finished_ms
    FROM runs AS r WHERE r.job_id IN (SELECT n.job_id FROM named AS n) AND r.kind = 'manual'
)
SELECT r.run_id
FROM mine AS r
WHERE r.run_id < :before_id
    AND (CAST(:state AS TEXT) IS NULL OR r.state = :state)
    AND (CAST(:from_ms AS BIGINT) IS NULL OR r.scheduled_for_ms >= :from_ms)
    AND (CAST(:to_ms AS BIGINT) IS NULL OR r.scheduled_for_ms < :to_ms)
    -- without what is planned for later
    AND (CAST(:due_ms AS BIGINT) IS NULL OR r.scheduled_for_ms <= :due_ms OR r.finished_ms IS NOT NULL)
    -- planned is what the row says of every run that is not final
    AND (CAST(:state AS TEXT) IS NULL OR :state <> 'planned' OR NOT (
        EXISTS (SELECT 1 FROM queue AS q WHERE q.run_id = r.run_id AND q.gate IS NOT NULL)
        OR EXISTS (SELECT 1 FROM leases AS l WHERE l.run_id = r.run_id
                   AND (l.node_id IS NULL OR l.due_ms <= :now_ms OR l.attempt > 1))))
ORDER BY r.run_id DESC
LIMIT :most
