-- Keep the content of timings.
INSERT INTO timings (timing_id, body)
SELECT timing_id, body
FROM (
    SELECT value ->> 'timing_id' AS timing_id, value ->> 'body' AS body
    FROM json_each(:rows)
) AS n
WHERE true
ON CONFLICT (timing_id) DO NOTHING
