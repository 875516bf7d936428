-- For runs that could start: each of their upstream jobs, and what became of its latest tick in the period of the run.
-- Every step is LATERAL with LIMIT 1, so that it is a probe of an index, whatever the planner thinks of JSON.
WITH RECURSIVE asked AS MATERIALIZED (
    SELECT n.run_id, n.scheduled_for_ms AS at_ms, b.tenant, b.definition, b.created_ms,
        greatest(
            (SELECT r.scheduled_for_ms FROM runs AS r
             WHERE r.job_id = n.job_id AND r.kind <> 'manual' AND r.scheduled_for_ms < n.scheduled_for_ms
             ORDER BY r.scheduled_for_ms DESC LIMIT 1),
            (SELECT CASE WHEN l.to_ms < n.scheduled_for_ms THEN l.to_ms ELSE l.from_ms END FROM ledger AS l
             WHERE l.job_id = n.job_id AND l.from_ms < n.scheduled_for_ms
             ORDER BY l.from_ms DESC LIMIT 1)) AS previous_ms
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (run_id BIGINT, job_id UUID, scheduled_for_ms BIGINT)
    CROSS JOIN LATERAL (
        SELECT j.tenant, j.definition, j.created_ms FROM jobs AS j WHERE j.job_id = n.job_id LIMIT 1
    ) AS b
),
pairs AS MATERIALIZED (
    SELECT p.run_id, p.at_ms, p.since_ms, p.on_failure, a.job_id, a.name
    FROM (
        SELECT q.run_id, q.at_ms, q.tenant, q.definition -> 'depends_on' AS names,
            q.definition ->> 'on_upstream_failure' AS on_failure,
            -- a tick before the creation was a backfill: the first tick after it has no previous one
            CASE WHEN q.previous_ms IS NULL OR (q.previous_ms < q.created_ms AND q.created_ms < q.at_ms)
                 THEN q.created_ms ELSE q.previous_ms END AS since_ms
        FROM asked AS q
    ) AS p
    CROSS JOIN LATERAL jsonb_array_elements_text(p.names) AS u (name)
    CROSS JOIN LATERAL (
        SELECT j.job_id, j.name FROM jobs AS j
        WHERE j.tenant = p.tenant AND j.name = u.name AND j.deleted_ms IS NULL LIMIT 1
    ) AS a
),
latest AS MATERIALIZED (
    SELECT p.*, r.run_id AS own_id, r.scheduled_for_ms AS own_ms, l.answer, l.covered_by_ms, l.last_ms
    FROM pairs AS p
    LEFT JOIN LATERAL (
        SELECT i.run_id, i.scheduled_for_ms FROM runs AS i
        WHERE i.job_id = p.job_id AND i.kind <> 'manual' AND i.scheduled_for_ms > p.since_ms
            AND i.scheduled_for_ms <= p.at_ms
        ORDER BY i.scheduled_for_ms DESC LIMIT 1
    ) AS r ON true
    LEFT JOIN LATERAL (
        -- a tick in shadow has run elsewhere: nobody waits for it, and nobody is skipped because of it
        SELECT i.to_ms, CASE WHEN i.reason = 'shadow' THEN 'succeeded' ELSE i.answer END AS answer, i.covered_by_ms,
            least(i.to_ms, p.at_ms) AS last_ms FROM ledger AS i
        WHERE i.job_id = p.job_id AND i.from_ms <= p.at_ms
        ORDER BY i.from_ms DESC LIMIT 1
    ) AS l ON l.to_ms > p.since_ms AND (r.scheduled_for_ms IS NULL OR l.last_ms > r.scheduled_for_ms)
),
found AS MATERIALIZED (
    SELECT t.*, CASE WHEN t.answer IS NULL THEN t.own_id ELSE (
        SELECT c.run_id FROM runs AS c
        WHERE c.job_id = t.job_id AND c.kind <> 'manual' AND c.scheduled_for_ms = t.covered_by_ms LIMIT 1
        ) END AS first_id
    FROM latest AS t
),
standing (run_id, at_ms, on_failure, job_id, name, tick_ms, answer, covered_by) AS (
    SELECT f.run_id, f.at_ms, f.on_failure, f.job_id, f.name, coalesce(f.last_ms, f.own_ms, f.since_ms),
        coalesce(r.state, f.answer), r.covered_by
    FROM found AS f
    LEFT JOIN LATERAL (SELECT i.state, i.covered_by FROM runs AS i WHERE i.run_id = f.first_id LIMIT 1) AS r ON true
    UNION
    SELECT s.run_id, s.at_ms, s.on_failure, s.job_id, s.name, s.tick_ms, r.state, r.covered_by
    FROM standing AS s
    CROSS JOIN LATERAL (SELECT i.state, i.covered_by FROM runs AS i WHERE i.run_id = s.covered_by LIMIT 1) AS r
    WHERE s.answer = 'merged'
)
SELECT s.run_id, s.job_id, s.name, s.on_failure, s.answer,
    CASE WHEN (c.state = 'active' AND c.next_due_ms <= s.at_ms) OR EXISTS (
        SELECT 1 FROM gaps AS g
        WHERE g.job_id = s.job_id AND g.from_ms < s.at_ms AND g.noticed_ms IS NOT NULL AND g.to_ms > s.tick_ms)
        THEN 1 ELSE 0 END AS undecided,
    CASE WHEN c.state = 'paused' AND c.cursor_ms < s.at_ms THEN 1 ELSE 0 END AS paused
FROM standing AS s
LEFT JOIN LATERAL (SELECT i.state, i.cursor_ms, i.next_due_ms FROM cursors AS i WHERE i.job_id = s.job_id LIMIT 1) AS c
    ON true
WHERE s.answer IS NULL OR s.answer <> 'merged'
    OR NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.run_id = s.covered_by)
ORDER BY s.run_id, s.name
