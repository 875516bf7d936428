-- Timings whose id is taken by another content.
SELECT t.timing_id
FROM timings AS t
JOIN jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (timing_id BIGINT, body TEXT) ON n.timing_id = t.timing_id AND
    n.body <> t.body
