-- How many runs of a job with a tick in a stretch are in each state, and how long those took that have ended.
SELECT r.state, count(*) AS runs, count(r.lasted_ms) AS timed, coalesce(sum(r.lasted_ms), 0) AS lasted_ms,
    coalesce(max(r.lasted_ms), 0) AS longest_ms
FROM (
    SELECT t.state, t.finished_ms - t.started_ms AS lasted_ms FROM runs AS t
    WHERE t.job_id = :job_id AND t.kind <> 'manual' AND t.scheduled_for_ms >= :from_ms AND t.scheduled_for_ms < :to_ms
    UNION ALL
    SELECT m.state, m.finished_ms - m.started_ms AS lasted_ms FROM runs AS m
    WHERE m.job_id = :job_id AND m.kind = 'manual' AND m.scheduled_for_ms >= :from_ms AND m.scheduled_for_ms < :to_ms
) AS r
GROUP BY r.state
