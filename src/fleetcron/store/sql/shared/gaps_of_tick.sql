-- The stretch that a tick belongs to if nobody has decided it yet, by the name of the job.
SELECT g.from_ms, g.to_ms, g.cause FROM jobs AS j
JOIN gaps AS g ON g.job_id = j.job_id AND g.from_ms < :at_ms AND g.to_ms >= :at_ms
WHERE j.tenant = :tenant AND j.name = :name
ORDER BY g.gap_id DESC LIMIT 1
