-- What left the normal path, the newest first.
SELECT event_id, at_ms, kind, count, job_id, node_id, actor, detail FROM events
WHERE (CAST(:kind AS TEXT) IS NULL OR kind = :kind) AND (CAST(:job_id AS TEXT) IS NULL OR CAST(job_id AS TEXT) = :job_id)
ORDER BY event_id DESC
LIMIT :most
