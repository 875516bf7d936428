-- The content of timings, by id (a JSON list).
SELECT timing_id, body FROM timings
WHERE timing_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)))
