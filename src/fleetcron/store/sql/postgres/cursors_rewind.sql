-- Let jobs stand at an instant again because their tables changed: forecasts are taken back, the undecided past is a gap.
WITH wanted AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(CAST(:groups AS jsonb)) AS n (g INTEGER, timing_id BIGINT, cursor_ms BIGINT,
        ticks_used BIGINT, state TEXT, to_ticks_used BIGINT, next_due_ms BIGINT, gap_from_ms BIGINT, gap_to_ms
        BIGINT, noticed_ms BIGINT, problem TEXT)
),
moved AS (
    UPDATE cursors AS c
    SET cursor_ms = :at_ms, ticks_used = w.to_ticks_used, next_due_ms = w.next_due_ms
    FROM wanted AS w
    WHERE c.timing_id = w.timing_id AND c.cursor_ms = w.cursor_ms AND c.ticks_used = w.ticks_used AND c.state =
        w.state
    RETURNING c.job_id, c.region, c.shard, c.revision, c.timing_id, w.gap_from_ms, w.gap_to_ms, w.noticed_ms,
        w.problem
),
opened AS (
    INSERT INTO gaps (job_id, region, shard, from_ms, to_ms, cause, policy, revision, timing_id, almanac,
        noticed_ms, trimmed)
    SELECT job_id, region, shard, gap_from_ms, gap_to_ms, CASE WHEN noticed_ms IS NULL THEN 'pause' ELSE 'outage'
        END, NULL,
           revision, timing_id, :epoch, noticed_ms, 0
    FROM moved WHERE gap_from_ms IS NOT NULL
),
unclaimed AS (
    DELETE FROM upcoming AS u
    USING moved AS m, runs AS r
    WHERE r.job_id = m.job_id AND r.scheduled_for_ms > :at_ms AND r.kind = 'tick' AND r.lane = 'live'
        AND r.state = 'planned' AND r.attempt = 0 AND u.run_after_ms = r.run_after_ms AND u.run_id = r.run_id
    RETURNING u.run_id
),
gone AS (
    DELETE FROM runs AS r USING unclaimed AS u WHERE r.run_id = u.run_id RETURNING r.job_id
),
stuck AS (
    UPDATE jobs AS j SET problem = m.problem
    FROM moved AS m
    WHERE j.job_id = m.job_id AND j.problem IS DISTINCT FROM m.problem
)
SELECT (SELECT count(*) FROM moved) AS jobs, (SELECT count(*) FROM gone) AS withdrawn
