-- How the latest runs of a job ended, since it was last changed: also those that were asked for. A job on demand has no
-- others.
-- Two parts, for there are two indexes: without them it reads the whole history.
SELECT e.state FROM (
    SELECT * FROM (
        SELECT r.state, r.scheduled_for_ms, r.run_id FROM runs AS r
        WHERE r.job_id = :job_id AND r.kind <> 'manual' AND r.finished_ms >= :since_ms
            AND r.state IN ('succeeded', 'dead')
        ORDER BY r.scheduled_for_ms DESC
        LIMIT :most
    ) AS planned
    UNION ALL
    SELECT * FROM (
        SELECT r.state, r.scheduled_for_ms, r.run_id FROM runs AS r
        WHERE r.job_id = :job_id AND r.kind = 'manual' AND r.finished_ms >= :since_ms
            AND r.state IN ('succeeded', 'dead')
        ORDER BY r.scheduled_for_ms DESC
        LIMIT :most
    ) AS asked_for
) AS e
ORDER BY e.scheduled_for_ms DESC, e.run_id DESC
LIMIT :most
