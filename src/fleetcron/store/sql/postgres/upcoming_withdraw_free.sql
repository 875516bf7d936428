-- Take ticks off their way that were never started, unless somebody is at them; only the returned ones were on it.
-- Materialised: read again, it would lock more.
WITH d AS MATERIALIZED (
    SELECT u.run_after_ms, u.run_id FROM runs AS r
    JOIN upcoming AS u ON u.run_after_ms = r.run_after_ms AND u.run_id = r.run_id
    WHERE r.run_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS v (value))
    FOR UPDATE OF u SKIP LOCKED
)
DELETE FROM upcoming AS u
USING d
WHERE u.run_after_ms = d.run_after_ms AND u.run_id = d.run_id
RETURNING u.run_id
