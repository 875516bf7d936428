-- What an attempt printed, after a piece that is known.
SELECT seq, at_ms, truncated, text FROM attempt_logs
WHERE run_id = :run_id AND attempt = :attempt AND seq > :after_seq ORDER BY seq LIMIT :most
