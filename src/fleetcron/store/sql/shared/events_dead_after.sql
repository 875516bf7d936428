-- Jobs whose runs have become dead letters since an event.
SELECT e.event_id, e.job_id, j.tenant, j.name, j.state, j.updated_ms, j.definition
FROM events AS e JOIN jobs AS j ON j.job_id = e.job_id
WHERE e.kind = 'run_dead' AND e.event_id > :after_id AND e.at_ms >= :since_ms
ORDER BY e.event_id
LIMIT :most
