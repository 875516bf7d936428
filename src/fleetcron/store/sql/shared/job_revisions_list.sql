-- Who changed a job, when, and from what to what; the newest first.
SELECT job_id, revision, at_ms, actor, action, before, after FROM job_revisions
WHERE job_id = :job_id
ORDER BY revision DESC
LIMIT :most
