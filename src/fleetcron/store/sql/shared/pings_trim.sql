-- Forget the oldest pings of a job that has too many.
DELETE FROM pings WHERE job_id = :job_id AND (at_ms, ping_id) <= (
    SELECT p.at_ms, p.ping_id FROM pings AS p
    WHERE p.job_id = :job_id
    ORDER BY p.at_ms DESC, p.ping_id DESC
    LIMIT 1 OFFSET :most)
