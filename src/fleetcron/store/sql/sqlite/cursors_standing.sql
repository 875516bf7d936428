-- Where all jobs of some timings stand, due or not.
SELECT c.timing_id, c.cursor_ms, c.ticks_used, c.state, max(c.next_due_ms) AS next_due_ms, count(*) AS jobs
FROM (
    SELECT value ->> 'timing_id' AS timing_id
    FROM json_each(:rows)
) AS n
JOIN cursors AS c ON c.timing_id = n.timing_id
GROUP BY c.timing_id, c.cursor_ms, c.ticks_used, c.state
ORDER BY c.timing_id, c.cursor_ms, c.ticks_used, c.state
