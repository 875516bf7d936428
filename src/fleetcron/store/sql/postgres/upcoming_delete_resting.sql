-- Runs that rest between two attempts are not on their way any more.
DELETE FROM upcoming WHERE (run_after_ms, run_id) IN (
    SELECT l.due_ms, l.run_id FROM leases AS l
    WHERE l.run_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS v (value))
        AND l.node_id IS NULL)
