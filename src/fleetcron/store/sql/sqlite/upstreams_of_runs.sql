-- For runs that could start: each of their upstream jobs, and what became of its latest tick in the period of the run.
-- CROSS JOIN keeps the order of the joins, so that every step is a probe of an index.
WITH RECURSIVE asked AS MATERIALIZED (
    SELECT n.run_id, n.at_ms, b.tenant, b.definition, b.created_ms,
        (SELECT r.scheduled_for_ms FROM runs AS r
         WHERE r.job_id = n.job_id AND r.kind <> 'manual' AND r.scheduled_for_ms < n.at_ms
         ORDER BY r.scheduled_for_ms DESC LIMIT 1) AS ran_ms,
        (SELECT CASE WHEN l.to_ms < n.at_ms THEN l.to_ms ELSE l.from_ms END FROM ledger AS l
         WHERE l.job_id = n.job_id AND l.from_ms < n.at_ms
         ORDER BY l.from_ms DESC LIMIT 1) AS answered_ms
    FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'job_id' AS job_id, value ->> 'scheduled_for_ms' AS at_ms
        FROM json_each(:rows)) AS n
    CROSS JOIN jobs AS b ON b.job_id = n.job_id
),
pairs AS MATERIALIZED (
    SELECT p.run_id, p.at_ms, p.since_ms, p.on_failure, a.job_id, a.name
    FROM (
        SELECT q.run_id, q.at_ms, q.tenant, q.definition, q.definition ->> 'on_upstream_failure' AS on_failure,
            -- a tick before the creation was a backfill: the first tick after it has no previous one
            CASE WHEN q.previous_ms IS NULL OR (q.previous_ms < q.created_ms AND q.created_ms < q.at_ms)
                 THEN q.created_ms ELSE q.previous_ms END AS since_ms
        FROM (SELECT *, max(coalesce(ran_ms, answered_ms), coalesce(answered_ms, ran_ms)) AS previous_ms
            FROM asked) AS q
    ) AS p
    CROSS JOIN json_each(p.definition, '$.depends_on') AS u
    CROSS JOIN jobs AS a ON a.tenant = p.tenant AND a.name = u.value AND a.deleted_ms IS NULL
),
latest AS MATERIALIZED (
    SELECT p.*, r.run_id AS own_id, r.scheduled_for_ms AS own_ms, l.covered_by_ms,
        -- a tick in shadow has run elsewhere: nobody waits for it, and nobody is skipped because of it
        CASE WHEN l.reason = 'shadow' THEN 'succeeded' ELSE l.answer END AS answer,
        min(l.to_ms, p.at_ms) AS last_ms
    FROM pairs AS p
    LEFT JOIN runs AS r ON r.run_id = (
        SELECT i.run_id FROM runs AS i
        WHERE i.job_id = p.job_id AND i.kind <> 'manual' AND i.scheduled_for_ms > p.since_ms
            AND i.scheduled_for_ms <= p.at_ms
        ORDER BY i.scheduled_for_ms DESC LIMIT 1)
    LEFT JOIN ledger AS l ON l.entry_id = (
        SELECT i.entry_id FROM ledger AS i
        WHERE i.job_id = p.job_id AND i.from_ms <= p.at_ms
        ORDER BY i.from_ms DESC LIMIT 1)
        AND l.to_ms > p.since_ms AND (r.scheduled_for_ms IS NULL OR min(l.to_ms, p.at_ms) > r.scheduled_for_ms)
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
    LEFT JOIN runs AS r ON r.run_id = f.first_id
    UNION
    SELECT s.run_id, s.at_ms, s.on_failure, s.job_id, s.name, s.tick_ms, r.state, r.covered_by
    FROM standing AS s
    CROSS JOIN runs AS r ON r.run_id = s.covered_by
    WHERE s.answer = 'merged'
)
SELECT s.run_id, s.job_id, s.name, s.on_failure, s.answer,
    CASE WHEN (c.state = 'active' AND c.next_due_ms <= s.at_ms) OR EXISTS (
        SELECT 1 FROM gaps AS g
        WHERE g.job_id = s.job_id AND g.from_ms < s.at_ms AND g.noticed_ms IS NOT NULL AND g.to_ms > s.tick_ms)
        THEN 1 ELSE 0 END AS undecided,
    CASE WHEN c.state = 'paused' AND c.cursor_ms < s.at_ms THEN 1 ELSE 0 END AS paused
FROM standing AS s
LEFT JOIN cursors AS c ON c.job_id = s.job_id
WHERE s.answer IS NULL OR s.answer <> 'merged'
    OR NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.run_id = s.covered_by)
ORDER BY s.run_id, s.name
