-- Dead letters by filter, with the last error of each, the newest first.
SELECT r.run_id, r.job_id, r.kind, r.scheduled_for_ms, r.finished_ms, r.attempt, r.failures, r.losses, r.round, r.reason,
    j.tenant, j.name, j.type, a.outcome, a.error_code, a.error_text, a.node_id
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
    AND (CAST(:before_id AS BIGINT) IS NULL OR r.run_id < :before_id)
ORDER BY r.run_id DESC
LIMIT :most
