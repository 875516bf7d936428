-- Create runs that somebody asked for, and put them on their way, not before now; those that exist already are not counted.
CREATE TEMP TABLE IF NOT EXISTS mark (run_id INTEGER);
DELETE FROM temp.mark;
INSERT INTO temp.mark (run_id) SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'runs'), 0);
INSERT INTO runs (job_id, scheduled_for_ms, run_after_ms, created_ms, window_from_ms, window_to_ms, almanac, covers,
    revision, kind, lane, state, asked_by)
SELECT job_id, scheduled_for_ms, run_after_ms, created_ms, window_from_ms, window_to_ms, almanac, covers, revision,
    kind, lane, 'planned', asked_by
FROM (
    SELECT value ->> 'job_id' AS job_id, value ->> 'scheduled_for_ms' AS scheduled_for_ms, value ->>
        'run_after_ms' AS run_after_ms, value ->> 'created_ms' AS created_ms, value ->> 'window_from_ms' AS
        window_from_ms, value ->> 'window_to_ms' AS window_to_ms, value ->> 'almanac' AS almanac, value ->>
        'covers' AS covers, value ->> 'revision' AS revision, value ->> 'kind' AS kind, value ->> 'lane' AS lane,
        value ->> 'asked_by' AS asked_by
    FROM json_each(:rows)
) AS n
WHERE true
ON CONFLICT (job_id, scheduled_for_ms) WHERE kind <> 'manual' DO NOTHING;
INSERT INTO upcoming (run_after_ms, run_id, job_id, lane)
SELECT max(run_after_ms, :now_ms), run_id, job_id, lane FROM runs WHERE run_id > (SELECT run_id FROM temp.mark);
SELECT count(*) AS runs FROM runs WHERE run_id > (SELECT run_id FROM temp.mark)
