-- Let jobs stand at an instant again because their tables changed: forecasts are taken back, the undecided past is a gap.
CREATE TEMP TABLE IF NOT EXISTS moved (
    job_id TEXT PRIMARY KEY, region TEXT, shard INTEGER, revision INTEGER, timing_id INTEGER, to_ticks_used INTEGER,
    next_due_ms INTEGER, gap_from_ms INTEGER, gap_to_ms INTEGER, noticed_ms INTEGER, problem TEXT);
CREATE TEMP TABLE IF NOT EXISTS gone (run_id INTEGER PRIMARY KEY, run_after_ms INTEGER, job_id TEXT);
DELETE FROM temp.moved;
DELETE FROM temp.gone;
INSERT INTO temp.moved
SELECT c.job_id, c.region, c.shard, c.revision, c.timing_id, n.to_ticks_used, n.next_due_ms, n.gap_from_ms,
    n.gap_to_ms,
       n.noticed_ms, n.problem
FROM (
    SELECT value ->> 'g' AS g, value ->> 'timing_id' AS timing_id, value ->> 'cursor_ms' AS cursor_ms, value ->>
        'ticks_used' AS ticks_used, value ->> 'state' AS state, value ->> 'to_ticks_used' AS to_ticks_used, value
        ->> 'next_due_ms' AS next_due_ms, value ->> 'gap_from_ms' AS gap_from_ms, value ->> 'gap_to_ms' AS
        gap_to_ms, value ->> 'noticed_ms' AS noticed_ms, value ->> 'problem' AS problem
    FROM json_each(:groups)
) AS n
JOIN cursors AS c ON c.timing_id = n.timing_id AND c.cursor_ms = n.cursor_ms AND c.ticks_used = n.ticks_used
    AND c.state = n.state;
UPDATE cursors
SET cursor_ms = :at_ms, ticks_used = m.to_ticks_used, next_due_ms = m.next_due_ms
FROM temp.moved AS m
WHERE cursors.job_id = m.job_id;
INSERT INTO gaps (job_id, region, shard, from_ms, to_ms, cause, policy, revision, timing_id, almanac, noticed_ms,
    trimmed)
SELECT job_id, region, shard, gap_from_ms, gap_to_ms, CASE WHEN noticed_ms IS NULL THEN 'pause' ELSE 'outage' END,
    NULL,
       revision, timing_id, :epoch, noticed_ms, 0
FROM temp.moved WHERE gap_from_ms IS NOT NULL;
INSERT INTO temp.gone
SELECT r.run_id, r.run_after_ms, r.job_id
FROM temp.moved AS m
JOIN runs AS r ON r.job_id = m.job_id AND r.scheduled_for_ms > :at_ms AND r.kind <> 'manual' AND r.kind = 'tick' AND r.lane = 'live'
    AND r.state = 'planned' AND r.attempt = 0
JOIN upcoming AS u ON u.run_after_ms = r.run_after_ms AND u.run_id = r.run_id;
DELETE FROM upcoming WHERE EXISTS (
    SELECT 1 FROM temp.gone AS g WHERE g.run_after_ms = upcoming.run_after_ms AND g.run_id = upcoming.run_id
);
DELETE FROM runs WHERE run_id IN (SELECT run_id FROM temp.gone);
UPDATE jobs SET problem = m.problem
FROM temp.moved AS m
WHERE jobs.job_id = m.job_id AND jobs.problem IS NOT m.problem;
SELECT (SELECT count(*) FROM temp.moved) AS jobs, (SELECT count(*) FROM temp.gone) AS withdrawn
