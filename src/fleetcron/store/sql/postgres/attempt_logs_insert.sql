-- Pieces of what attempts print; a piece that is there already was sent twice.
INSERT INTO attempt_logs (run_id, attempt, seq, at_ms, truncated, text)
SELECT run_id, attempt, seq, :now_ms, truncated, text
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (run_id BIGINT, attempt INTEGER, seq INTEGER, truncated INTEGER,
    text TEXT)
WHERE true
ON CONFLICT DO NOTHING
