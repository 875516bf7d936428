-- What became of a tenant's keys and their sessions, the newest first. They have no job; their detail has the tenant.
SELECT e.event_id, e.at_ms, e.kind, e.count, e.job_id, e.node_id, e.actor, e.detail,
    CAST(NULL AS TEXT) AS tenant, CAST(NULL AS TEXT) AS name
FROM events AS e
WHERE e.kind IN ('key_created', 'key_revoked', 'session_began', 'session_ended')
    AND (CAST(:kind AS TEXT) IS NULL OR e.kind = :kind)
    AND e.detail ->> 'tenant' = :tenant
    AND (CAST(:before_id AS BIGINT) IS NULL OR e.event_id < :before_id)
ORDER BY e.event_id DESC
LIMIT :most
