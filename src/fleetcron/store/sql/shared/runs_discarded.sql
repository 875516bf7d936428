-- When and why a dead letter was discarded, with what was noted about its job at that time: one of these says who did.
SELECT r.discarded_ms, r.discarded_why, e.actor, e.detail
FROM runs AS r
LEFT JOIN events AS e ON e.job_id = r.job_id AND e.kind = 'run_discarded' AND e.at_ms >= r.discarded_ms
WHERE r.run_id = :run_id AND r.discarded_ms IS NOT NULL
ORDER BY e.event_id
LIMIT :most
