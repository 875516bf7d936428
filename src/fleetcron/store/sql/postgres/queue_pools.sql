-- In which pools these runs are queued.
SELECT run_id, pool FROM queue WHERE run_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS
    v (value))
ORDER BY run_id
