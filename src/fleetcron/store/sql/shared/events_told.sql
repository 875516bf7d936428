-- What left the normal path, with the names of the jobs, the newest first.
SELECT e.event_id, e.at_ms, e.kind, e.count, e.job_id, e.node_id, e.actor, e.detail, j.tenant, j.name
FROM events AS e
LEFT JOIN jobs AS j ON j.job_id = e.job_id
WHERE (CAST(:kind AS TEXT) IS NULL OR e.kind = :kind)
    AND (CAST(:tenant AS TEXT) IS NULL OR j.tenant = :tenant)
    AND (CAST(:name AS TEXT) IS NULL OR j.name = :name)
    AND (CAST(:before_id AS BIGINT) IS NULL OR e.event_id < :before_id)
ORDER BY e.event_id DESC
LIMIT :most
