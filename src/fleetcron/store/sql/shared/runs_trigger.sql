-- Create a run outside the schedule, unless it was asked for before.
INSERT INTO runs (job_id, scheduled_for_ms, run_after_ms, created_ms, almanac, covers, revision, kind, lane, state,
    payload, asked_by, asked_key)
VALUES (:job_id, :now_ms, :now_ms, :now_ms, :almanac, 1, :revision, 'manual', 'live', 'planned', :payload, :actor, :key)
ON CONFLICT (job_id, asked_key) WHERE asked_key IS NOT NULL DO NOTHING
RETURNING run_id
