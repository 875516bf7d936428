-- Keep the content of timings.
INSERT INTO timings (timing_id, body)
SELECT timing_id, body
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (timing_id BIGINT, body TEXT)
WHERE true
ON CONFLICT (timing_id) DO NOTHING
