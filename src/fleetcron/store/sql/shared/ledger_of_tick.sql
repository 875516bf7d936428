-- The line of the ledger that a tick belongs to, by the name of the job; also of a job that was deleted.
SELECT l.*, j.tenant, j.name FROM jobs AS j
JOIN ledger AS l ON l.job_id = j.job_id AND l.from_ms = (
    SELECT max(i.from_ms) FROM ledger AS i WHERE i.job_id = j.job_id AND i.from_ms <= :at_ms)
WHERE j.tenant = :tenant AND j.name = :name AND l.to_ms >= :at_ms
ORDER BY l.entry_id DESC LIMIT 1
