-- Create runs that somebody asked for, and put them on their way, not before now; those that exist already are not counted.
WITH born AS (
    INSERT INTO runs (job_id, scheduled_for_ms, run_after_ms, created_ms, window_from_ms, window_to_ms, almanac,
        covers, revision, kind, lane, state, asked_by)
    SELECT job_id, scheduled_for_ms, run_after_ms, created_ms, window_from_ms, window_to_ms, almanac, covers,
        revision, kind, lane, 'planned', asked_by
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, scheduled_for_ms BIGINT, run_after_ms BIGINT,
        created_ms BIGINT, window_from_ms BIGINT, window_to_ms BIGINT, almanac BIGINT, covers INTEGER, revision
        INTEGER, kind TEXT, lane TEXT, asked_by TEXT)
    ON CONFLICT (job_id, scheduled_for_ms) WHERE kind <> 'manual' DO NOTHING
    RETURNING run_after_ms, run_id, job_id, lane
),
queued AS (
    INSERT INTO upcoming (run_after_ms, run_id, job_id, lane)
    SELECT greatest(run_after_ms, :now_ms), run_id, job_id, lane FROM born
)
SELECT count(*) AS runs FROM born
