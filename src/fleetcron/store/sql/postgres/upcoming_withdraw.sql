-- Take runs off their way, before their first attempt, before another one or replayed; only the returned ones were on it.
DELETE FROM upcoming WHERE (run_after_ms, run_id) IN (
    SELECT r.run_after_ms, r.run_id FROM runs AS r WHERE r.run_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS
        v (value))
    UNION ALL
    SELECT l.due_ms, l.run_id FROM leases AS l WHERE l.run_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS
        v (value))
    UNION ALL
    SELECT u.run_after_ms, u.run_id FROM upcoming AS u WHERE u.lane = 'catchup' AND u.run_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS
        v (value))
)
RETURNING run_id
