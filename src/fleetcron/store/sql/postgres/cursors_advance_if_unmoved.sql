-- Advance due jobs that still stand where their plan was made, and write what the plan says, all in one.
-- A plan is joined by (timing, cursor, ticks used): whatever it depended on is compared here, row by row.
-- What is late is the same for all of them, but for a job with a run there already, which people cancelled ahead of its
-- time: for that one the late ticks become a gap, because only gaps are decided job by job.
WITH plan AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(CAST(:plans AS jsonb)) AS p (
        g INTEGER, timing_id BIGINT, cursor_ms BIGINT, ticks_used BIGINT,
        to_cursor_ms BIGINT, to_ticks_used BIGINT, next_due_ms BIGINT, late_to_ms BIGINT, finished INTEGER)
),
tick AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(CAST(:ticks AS jsonb)) AS t (
        g INTEGER, scheduled_for_ms BIGINT, run_after_ms BIGINT, lane TEXT, covers INTEGER,
        window_from_ms BIGINT, window_to_ms BIGINT)
),
due AS (
    SELECT f.place, f.job_id, p.g, p.timing_id, p.cursor_ms, p.ticks_used, p.to_cursor_ms, p.to_ticks_used, p.next_due_ms,
           p.late_to_ms, p.finished
    FROM jsonb_to_recordset(CAST(:held AS jsonb)) AS h (region TEXT, shard INTEGER)
    CROSS JOIN LATERAL (
        SELECT c.ctid AS place, c.job_id, c.timing_id, c.cursor_ms, c.ticks_used
        FROM cursors AS c
        WHERE c.region = h.region AND c.shard = h.shard AND c.next_due_ms <= :horizon_ms
            AND c.timing_id NOT IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:without AS jsonb)) AS v (value))
        ORDER BY c.next_due_ms
        LIMIT :per_shard
    ) AS f
    JOIN plan AS p ON p.timing_id = f.timing_id AND p.cursor_ms = f.cursor_ms AND p.ticks_used = f.ticks_used
),
advanced AS (
    UPDATE cursors AS c
    SET cursor_ms = d.to_cursor_ms, ticks_used = d.to_ticks_used, next_due_ms = d.next_due_ms,
        state = CASE WHEN d.finished = 1 THEN 'finished' ELSE c.state END
    FROM due AS d
    -- once more: if somebody moved the row after we read it, this is asked of the row as it is now
    WHERE c.ctid = d.place AND c.job_id = d.job_id AND c.timing_id = d.timing_id AND c.cursor_ms = d.cursor_ms AND c.ticks_used = d.ticks_used
        AND c.next_due_ms <= :horizon_ms
    RETURNING c.job_id, c.revision, c.region, c.shard, c.timing_id, d.g, d.finished, d.cursor_ms AS from_ms, d.late_to_ms,
        d.late_to_ms IS NOT NULL AND EXISTS (
            SELECT 1 FROM runs AS r
            WHERE r.job_id = c.job_id AND r.kind <> 'manual' AND r.scheduled_for_ms > d.cursor_ms
                AND r.scheduled_for_ms <= d.late_to_ms AND (r.state = 'cancelled' OR r.round > 0)) AS apart
),
born AS (
    INSERT INTO runs (job_id, scheduled_for_ms, run_after_ms, created_ms, window_from_ms, window_to_ms,
                      almanac, covers, revision, kind, lane, state)
    SELECT a.job_id, t.scheduled_for_ms, t.run_after_ms, :now_ms, t.window_from_ms, t.window_to_ms,
           :epoch, t.covers, a.revision, 'tick', t.lane, 'planned'
    FROM advanced AS a JOIN tick AS t ON t.g = a.g AND NOT (a.apart AND t.scheduled_for_ms <= a.late_to_ms)
    ON CONFLICT (job_id, scheduled_for_ms) WHERE kind <> 'manual' DO NOTHING
    RETURNING run_after_ms, run_id, job_id, lane
),
queued AS (
    INSERT INTO upcoming (run_after_ms, run_id, job_id, lane) SELECT run_after_ms, run_id, job_id, lane FROM born
),
answered AS (
    INSERT INTO ledger (job_id, from_ms, to_ms, ticks, answer, reason, covered_by_ms, revision, almanac, noted_ms)
    SELECT a.job_id, n.from_ms, n.to_ms, n.ticks, n.answer, n.reason, n.covered_by_ms, a.revision, :epoch, :now_ms
    FROM advanced AS a
    JOIN jsonb_to_recordset(CAST(:answers AS jsonb)) AS n (
        g INTEGER, from_ms BIGINT, to_ms BIGINT, ticks BIGINT, answer TEXT, reason TEXT, covered_by_ms BIGINT)
        ON n.g = a.g AND NOT a.apart
    ON CONFLICT (job_id, from_ms) DO NOTHING
    RETURNING ticks
),
opened AS (
    INSERT INTO gaps (job_id, region, shard, from_ms, to_ms, cause, policy, revision, timing_id, almanac, noticed_ms, trimmed)
    SELECT a.job_id, a.region, a.shard, n.from_ms, n.to_ms, n.cause, NULL, a.revision, a.timing_id, :epoch, :now_ms, 0
    FROM advanced AS a
    JOIN jsonb_to_recordset(CAST(:gaps AS jsonb)) AS n (g INTEGER, from_ms BIGINT, to_ms BIGINT, cause TEXT) ON n.g = a.g
        AND NOT a.apart
    UNION ALL
    SELECT job_id, region, shard, from_ms, late_to_ms, 'outage', NULL, revision, timing_id, :epoch, :now_ms, 0
    FROM advanced WHERE apart
),
finished AS (
    UPDATE jobs AS j SET state = 'finished', updated_ms = :now_ms
    FROM advanced AS a
    WHERE a.finished = 1 AND j.job_id = a.job_id AND j.state = 'active'
    RETURNING j.job_id
),
said AS (
    INSERT INTO events (at_ms, kind, count, job_id, detail)
    SELECT db_now_ms(), 'job_finished', 1, job_id, '{}' FROM finished
)
SELECT (SELECT count(*) FROM advanced) AS jobs,
       w.wanted, w.runs,
       CASE WHEN w.wanted = w.runs THEN 0 ELSE (
           SELECT count(*)
           FROM advanced AS a JOIN tick AS t ON t.g = a.g AND NOT (a.apart AND t.scheduled_for_ms <= a.late_to_ms)
           CROSS JOIN LATERAL (
               SELECT 1 FROM runs AS r
               WHERE r.job_id = a.job_id AND r.kind <> 'manual' AND r.scheduled_for_ms = t.scheduled_for_ms
                   AND (r.state = 'cancelled' OR r.round > 0)
               LIMIT 1) AS one) END AS kept,
       (SELECT coalesce(sum(ticks), 0) FROM answered) AS answered
FROM (
    SELECT (SELECT count(*)
            FROM advanced AS a JOIN tick AS t ON t.g = a.g AND NOT (a.apart AND t.scheduled_for_ms <= a.late_to_ms)) AS wanted,
           (SELECT count(*) FROM born) AS runs
) AS w
