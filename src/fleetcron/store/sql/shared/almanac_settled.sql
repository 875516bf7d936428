-- The last instant that was decided or claimed, as far as the latest rows tell: new tables hold from there on.
SELECT max(settled.ms) AS settled_ms
FROM (
    SELECT r.created_ms AS ms FROM (SELECT created_ms FROM runs ORDER BY run_id DESC LIMIT 10000) AS r
    UNION ALL
    SELECT l.noted_ms AS ms FROM (SELECT noted_ms FROM ledger ORDER BY entry_id DESC LIMIT 10000) AS l
    UNION ALL
    SELECT e.at_ms AS ms FROM (SELECT at_ms FROM events ORDER BY event_id DESC LIMIT 10000) AS e
    UNION ALL
    SELECT max(g.to_ms) AS ms FROM gaps AS g
    UNION ALL
    SELECT c.scheduled_for_ms AS ms FROM (SELECT * FROM runs ORDER BY run_id DESC LIMIT 10000) AS c
    WHERE c.kind = 'tick' AND c.lane = 'live' AND c.scheduled_for_ms > db_now_ms() AND NOT EXISTS (
        SELECT 1 FROM upcoming AS u WHERE u.run_after_ms = c.run_after_ms AND u.run_id = c.run_id)
) AS settled
