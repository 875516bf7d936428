-- The safety net: runs without an answer that stand nowhere. It looks at a stretch of runs at a time.
SELECT r.run_id, r.job_id, r.lane, r.run_after_ms
FROM runs AS r
WHERE r.run_id > :after_id AND r.run_id <= :until_id AND r.finished_ms IS NULL AND r.run_after_ms < :before_ms
    AND NOT EXISTS (SELECT 1 FROM upcoming AS u WHERE u.run_after_ms = r.run_after_ms AND u.run_id = r.run_id)
    AND NOT EXISTS (SELECT 1 FROM upcoming AS c WHERE c.lane = 'catchup' AND c.run_id = r.run_id)
    AND NOT EXISTS (SELECT 1 FROM queue AS q WHERE q.run_id = r.run_id)
    AND NOT EXISTS (SELECT 1 FROM leases AS l WHERE l.run_id = r.run_id)
ORDER BY r.run_id
