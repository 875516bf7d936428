-- Where all jobs of some timings stand, due or not.
SELECT c.timing_id, c.cursor_ms, c.ticks_used, c.state, max(c.next_due_ms) AS next_due_ms, count(*) AS jobs
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (timing_id BIGINT)
JOIN cursors AS c ON c.timing_id = n.timing_id
GROUP BY c.timing_id, c.cursor_ms, c.ticks_used, c.state
ORDER BY c.timing_id, c.cursor_ms, c.ticks_used, c.state
