-- The run of a tick, by the name of the job; also of a job that was deleted.
SELECT r.run_id FROM jobs AS j
JOIN runs AS r ON r.job_id = j.job_id AND r.kind <> 'manual' AND r.scheduled_for_ms = :at_ms
WHERE j.tenant = :tenant AND j.name = :name
ORDER BY r.run_id DESC LIMIT 1
