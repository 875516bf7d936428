-- Pieces of what attempts print; a piece that is there already was sent twice.
INSERT INTO attempt_logs (run_id, attempt, seq, at_ms, truncated, text)
SELECT run_id, attempt, seq, :now_ms, truncated, text
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'attempt' AS attempt, value ->> 'seq' AS seq,
    value ->> 'truncated' AS truncated, value ->> 'text' AS text FROM json_each(:rows)) AS n
WHERE true
ON CONFLICT DO NOTHING
