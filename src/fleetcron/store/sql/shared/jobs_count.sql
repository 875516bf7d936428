-- How many jobs there are in each state, and when the next instant of any of them is.
SELECT
    c.state,
    count(*) AS jobs,
    min(c.next_due_ms) AS next_due_ms,
    (SELECT min(u.run_after_ms) FROM upcoming AS u WHERE u.run_after_ms > db_now_ms()) AS next_planned_ms
FROM cursors AS c
GROUP BY c.state
ORDER BY c.state
