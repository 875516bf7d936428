-- Runs that were never started and cannot start in time any more.
SELECT run_id, pool, deadline_ms FROM queue WHERE deadline_ms < :now_ms AND attempt = 0 AND round = 0 ORDER BY deadline_ms,
    run_id LIMIT :most
