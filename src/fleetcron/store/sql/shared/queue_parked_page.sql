-- Some of those who wait for one thing, after a certain one, and whether their jobs have ended.
SELECT q.run_id, q.job_id, q.overlap, q.scheduled_for_ms,
    CASE WHEN j.deleted_ms IS NOT NULL OR j.state = 'cancelled' THEN 1 ELSE 0 END AS ended
FROM queue AS q
LEFT JOIN jobs AS j ON j.job_id = q.job_id
WHERE q.gate = :gate AND q.key = :key AND (q.scheduled_for_ms, q.run_id) > (:after_ms, :after_id)
ORDER BY q.scheduled_for_ms, q.run_id LIMIT :most
