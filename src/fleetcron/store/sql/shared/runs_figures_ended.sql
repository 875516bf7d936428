-- Of the runs after one: how many have ended since an instant, in each state, and how long they took.
SELECT r.state, count(*) AS runs, count(r.started_ms) AS timed,
    coalesce(sum(r.finished_ms - r.started_ms), 0) AS lasted_ms,
    coalesce(max(r.finished_ms - r.started_ms), 0) AS longest_ms
FROM runs AS r
JOIN jobs AS j ON j.job_id = r.job_id
WHERE r.run_id >= :first_id AND r.finished_ms >= :since_ms
    AND (CAST(:tenant AS TEXT) IS NULL OR j.tenant = :tenant)
GROUP BY r.state
