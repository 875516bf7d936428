-- The run of a job's latest tick up to an instant.
SELECT run_id FROM runs WHERE job_id = :job_id AND kind <> 'manual' AND scheduled_for_ms <= :until_ms
ORDER BY scheduled_for_ms DESC LIMIT 1
