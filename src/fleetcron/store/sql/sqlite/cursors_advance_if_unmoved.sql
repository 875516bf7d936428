-- Advance due jobs that still stand where their plan was made, and write what the plan says, all in one.
-- SQLite has no writing CTEs: the batch is kept in temporary tables, under the one writer's lock.
-- What is late is the same for all of a plan, but for a job with a run there already, which people cancelled ahead of its
-- time (`apart`): for that one the late ticks become a gap, because only gaps are decided job by job.
CREATE TEMP TABLE IF NOT EXISTS plan (
    timing_id INTEGER, cursor_ms INTEGER, ticks_used INTEGER, g INTEGER, to_cursor_ms INTEGER, to_ticks_used INTEGER,
    next_due_ms INTEGER, late_to_ms INTEGER, finished INTEGER, PRIMARY KEY (timing_id, cursor_ms, ticks_used)) WITHOUT ROWID;
CREATE TEMP TABLE IF NOT EXISTS batch (
    job_id TEXT PRIMARY KEY, revision INTEGER, region TEXT, shard INTEGER, timing_id INTEGER, g INTEGER,
    to_cursor_ms INTEGER, to_ticks_used INTEGER, next_due_ms INTEGER, finished INTEGER, from_ms INTEGER, late_to_ms INTEGER,
    apart INTEGER) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS temp.batch_by_g ON batch (g);
CREATE TEMP TABLE IF NOT EXISTS mark (run_id INTEGER);
DELETE FROM temp.plan;
DELETE FROM temp.batch;
DELETE FROM temp.mark;
INSERT INTO temp.mark SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'runs'), 0);
INSERT INTO temp.plan
SELECT value ->> 'timing_id', value ->> 'cursor_ms', value ->> 'ticks_used', value ->> 'g', value ->> 'to_cursor_ms',
       value ->> 'to_ticks_used', value ->> 'next_due_ms', value ->> 'late_to_ms', value ->> 'finished'
FROM json_each(:plans);
INSERT INTO temp.batch
SELECT c.job_id, c.revision, c.region, c.shard, c.timing_id, p.g, p.to_cursor_ms, p.to_ticks_used, p.next_due_ms, p.finished,
       p.cursor_ms, p.late_to_ms, p.late_to_ms IS NOT NULL AND EXISTS (
           SELECT 1 FROM runs AS r
           WHERE r.job_id = c.job_id AND r.kind <> 'manual' AND r.scheduled_for_ms > p.cursor_ms
               AND r.scheduled_for_ms <= p.late_to_ms AND (r.state = 'cancelled' OR r.round > 0))
FROM json_each(:held) AS h
JOIN cursors AS c ON c.rowid IN (
    SELECT i.rowid FROM cursors AS i
    WHERE i.region = h.value ->> 'region' AND i.shard = h.value ->> 'shard' AND i.next_due_ms <= :horizon_ms
        AND (:without = '[]' OR i.timing_id NOT IN (SELECT value FROM json_each(:without)))
    ORDER BY i.next_due_ms
    LIMIT :per_shard
)
JOIN temp.plan AS p ON p.timing_id = c.timing_id AND p.cursor_ms = c.cursor_ms AND p.ticks_used = c.ticks_used;
UPDATE cursors
SET cursor_ms = b.to_cursor_ms, ticks_used = b.to_ticks_used, next_due_ms = b.next_due_ms,
    state = CASE WHEN b.finished = 1 THEN 'finished' ELSE cursors.state END
FROM temp.batch AS b
WHERE cursors.job_id = b.job_id;
INSERT INTO runs (job_id, scheduled_for_ms, run_after_ms, created_ms, window_from_ms, window_to_ms,
                  almanac, covers, revision, kind, lane, state)
SELECT b.job_id, t.value ->> 'scheduled_for_ms', t.value ->> 'run_after_ms', :now_ms,
       t.value ->> 'window_from_ms', t.value ->> 'window_to_ms',
       :epoch, t.value ->> 'covers', b.revision, 'tick', t.value ->> 'lane', 'planned'
FROM json_each(:ticks) AS t
CROSS JOIN temp.batch AS b ON b.g = t.value ->> 'g'
WHERE NOT (b.apart AND t.value ->> 'scheduled_for_ms' <= b.late_to_ms)
ON CONFLICT (job_id, scheduled_for_ms) WHERE kind <> 'manual' DO NOTHING;
INSERT INTO upcoming (run_after_ms, run_id, job_id, lane)
SELECT run_after_ms, run_id, job_id, lane FROM runs WHERE run_id > (SELECT run_id FROM temp.mark);
INSERT INTO ledger (job_id, from_ms, to_ms, ticks, answer, reason, covered_by_ms, revision, almanac, noted_ms)
SELECT b.job_id, n.value ->> 'from_ms', n.value ->> 'to_ms', n.value ->> 'ticks', n.value ->> 'answer',
       n.value ->> 'reason', n.value ->> 'covered_by_ms', b.revision, :epoch, :now_ms
FROM json_each(:answers) AS n
CROSS JOIN temp.batch AS b ON b.g = n.value ->> 'g'
WHERE NOT b.apart
ON CONFLICT (job_id, from_ms) DO NOTHING;
INSERT INTO gaps (job_id, region, shard, from_ms, to_ms, cause, policy, revision, timing_id, almanac, noticed_ms, trimmed)
SELECT b.job_id, b.region, b.shard, n.value ->> 'from_ms', n.value ->> 'to_ms', n.value ->> 'cause', NULL,
       b.revision, b.timing_id, :epoch, :now_ms, 0
FROM json_each(:gaps) AS n
CROSS JOIN temp.batch AS b ON b.g = n.value ->> 'g'
WHERE NOT b.apart
UNION ALL
SELECT job_id, region, shard, from_ms, late_to_ms, 'outage', NULL, revision, timing_id, :epoch, :now_ms, 0
FROM temp.batch WHERE apart;
INSERT INTO events (at_ms, kind, count, job_id, detail)
SELECT db_now_ms(), 'job_finished', 1, b.job_id, '{}'
FROM temp.batch AS b JOIN jobs AS j ON j.job_id = b.job_id
WHERE b.finished = 1 AND j.state = 'active';
UPDATE jobs SET state = 'finished', updated_ms = :now_ms
WHERE state = 'active' AND job_id IN (SELECT job_id FROM temp.batch WHERE finished = 1);
SELECT (SELECT count(*) FROM temp.batch) AS jobs, w.wanted, w.runs,
       CASE WHEN w.wanted = w.runs THEN 0 ELSE (
           SELECT count(*)
           FROM json_each(:ticks) AS t
           JOIN temp.batch AS b ON b.g = t.value ->> 'g' AND NOT (b.apart AND t.value ->> 'scheduled_for_ms' <= b.late_to_ms)
           JOIN runs AS r ON r.job_id = b.job_id AND r.kind <> 'manual' AND r.scheduled_for_ms = t.value ->> 'scheduled_for_ms'
           WHERE r.state = 'cancelled' OR r.round > 0) END AS kept,
       (SELECT coalesce(sum(n.value ->> 'ticks'), 0)
        FROM json_each(:answers) AS n JOIN temp.batch AS b ON b.g = n.value ->> 'g' AND NOT b.apart) AS answered
FROM (
    SELECT (SELECT count(*)
            FROM json_each(:ticks) AS t
            JOIN temp.batch AS b ON b.g = t.value ->> 'g'
                AND NOT (b.apart AND t.value ->> 'scheduled_for_ms' <= b.late_to_ms)) AS wanted,
           (SELECT count(*) FROM runs WHERE run_id > (SELECT run_id FROM temp.mark)) AS runs
) AS w
