-- The stretches of a job's past that are not decided yet, as far as they touch the ticks of a stretch.
SELECT from_ms, to_ms FROM gaps WHERE job_id = :job_id AND to_ms >= :from_ms AND from_ms < :to_ms ORDER BY from_ms
