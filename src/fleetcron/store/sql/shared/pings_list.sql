-- The pings of a job in a stretch, the newest first.
SELECT ping_id, at_ms, started_ms, finished_ms, exit_code, host FROM pings
WHERE job_id = :job_id AND at_ms >= :from_ms AND at_ms < :to_ms
ORDER BY at_ms DESC, ping_id DESC
LIMIT :most
