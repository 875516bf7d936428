-- The run of the tick that comes next after a run of the same job.
SELECT n.run_id FROM runs AS r
JOIN runs AS n ON n.job_id = r.job_id AND n.kind <> 'manual' AND n.scheduled_for_ms > r.scheduled_for_ms
WHERE r.run_id = :run_id
ORDER BY n.scheduled_for_ms LIMIT 1
