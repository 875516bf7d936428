-- The ticks of a stretch that have a run.
SELECT scheduled_for_ms FROM runs
WHERE job_id = :job_id AND kind <> 'manual' AND scheduled_for_ms >= :from_ms AND scheduled_for_ms <= :to_ms
ORDER BY scheduled_for_ms
