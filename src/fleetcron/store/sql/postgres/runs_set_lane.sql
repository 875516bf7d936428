-- Late ticks that are caught up.
UPDATE runs SET lane = 'catchup'
WHERE run_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS v (value))
