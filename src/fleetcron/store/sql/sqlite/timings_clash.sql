-- Timings whose id is taken by another content.
SELECT t.timing_id
FROM timings AS t
JOIN (
    SELECT value ->> 'timing_id' AS timing_id, value ->> 'body' AS body
    FROM json_each(:rows)
) AS n ON n.timing_id = t.timing_id AND n.body <> t.body
