-- Take the runs that are due within a moment, with what decides their place in the queue. The :first and the :last of
-- them are looked at; each queue and tenant gives its first one, then each its second: where more is seen than is taken,
-- nobody's few stand behind the many of another. Without some jobs, a JSON list.
-- Materialised: on the inner side of a join it would be read again, and take more than the most.
WITH seen AS MATERIALIZED (
    (SELECT run_after_ms, run_id, job_id, lane FROM upcoming WHERE run_after_ms <= :until_ms
    AND job_id NOT IN (SELECT CAST(value AS UUID) FROM jsonb_array_elements_text(CAST(:without AS jsonb)) AS v (value))
    ORDER BY run_after_ms, run_id LIMIT :first)
    UNION
    (SELECT run_after_ms, run_id, job_id, lane FROM upcoming WHERE run_after_ms <= :until_ms
    AND job_id NOT IN (SELECT CAST(value AS UUID) FROM jsonb_array_elements_text(CAST(:without AS jsonb)) AS v (value))
    ORDER BY run_after_ms DESC, run_id DESC LIMIT :last)
), turns AS (
    SELECT s.run_after_ms, s.run_id,
        row_number() OVER (PARTITION BY j.pool, s.lane, j.priority, j.tenant ORDER BY s.run_after_ms, s.run_id) AS turn
    -- one by one: otherwise a million jobs are read for the sake of some thousand runs
    FROM seen AS s LEFT JOIN LATERAL (SELECT * FROM jobs AS i WHERE i.job_id = s.job_id OFFSET 0) AS j ON true
), d AS MATERIALIZED (
    SELECT run_after_ms, run_id FROM upcoming
    WHERE (run_after_ms, run_id) IN (
        SELECT run_after_ms, run_id FROM turns ORDER BY turn, run_after_ms, run_id LIMIT :most)
    FOR UPDATE SKIP LOCKED
), taken AS (
    DELETE FROM upcoming AS u
    USING d
    WHERE u.run_after_ms = d.run_after_ms AND u.run_id = d.run_id
    RETURNING u.run_id, u.run_after_ms
)
SELECT r.run_id, t.run_after_ms AS due_ms, j.pool, r.lane, j.priority, j.tenant, coalesce(w.weight, 1) AS weight,
    r.job_id, r.scheduled_for_ms,
    CASE WHEN r.kind = 'tick' AND r.lane = 'live' AND r.round = 0 AND l.run_id IS NULL THEN 1 ELSE 0 END AS fresh_tick
FROM taken AS t
JOIN runs AS r ON r.run_id = t.run_id AND r.finished_ms IS NULL
JOIN jobs AS j ON j.job_id = r.job_id
LEFT JOIN leases AS l ON l.run_id = t.run_id
LEFT JOIN tenants AS w ON w.tenant = j.tenant
WHERE l.node_id IS NULL
ORDER BY t.run_after_ms, r.scheduled_for_ms, r.run_id
