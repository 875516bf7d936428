-- Ticks that did not run, by filter, the newest first.
SELECT l.*, j.tenant, j.name
FROM ledger AS l
JOIN jobs AS j ON j.job_id = l.job_id
WHERE (CAST(:tenant AS TEXT) IS NULL OR j.tenant = :tenant)
    AND (CAST(:name AS TEXT) IS NULL OR j.name = :name)
    AND (CAST(:answer AS TEXT) IS NULL OR l.answer = :answer)
    AND (CAST(:from_ms AS BIGINT) IS NULL OR l.to_ms >= :from_ms)
    AND (CAST(:to_ms AS BIGINT) IS NULL OR l.from_ms < :to_ms)
    AND (CAST(:before_id AS BIGINT) IS NULL OR l.entry_id < :before_id)
ORDER BY l.entry_id DESC
LIMIT :most
