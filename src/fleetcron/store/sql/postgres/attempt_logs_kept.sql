-- How much is kept already of what attempts print, and which pieces; nothing for attempts that are not this node's.
WITH n AS MATERIALIZED (
    SELECT run_id, attempt, seq
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS given (run_id BIGINT, attempt INTEGER, seq INTEGER)
), mine AS MATERIALIZED (
    SELECT DISTINCT n.run_id, n.attempt FROM n
    WHERE EXISTS (SELECT 1 FROM leases AS l
                  WHERE l.run_id = n.run_id AND l.attempt = n.attempt AND l.node_id = :node_id)
        OR EXISTS (SELECT 1 FROM attempts AS a
                   WHERE a.run_id = n.run_id AND a.attempt = n.attempt AND a.node_id = :node_id)
), kept AS MATERIALIZED (
    SELECT m.run_id, m.attempt, coalesce(sum(octet_length(t.text)), 0) AS bytes,
        coalesce(max(t.truncated), 0) AS truncated
    FROM mine AS m
    LEFT JOIN attempt_logs AS t ON t.run_id = m.run_id AND t.attempt = m.attempt
    GROUP BY m.run_id, m.attempt
)
SELECT k.run_id, k.attempt, n.seq, k.bytes, k.truncated, CASE WHEN t.seq IS NULL THEN 0 ELSE 1 END AS there
FROM kept AS k
JOIN n ON n.run_id = k.run_id AND n.attempt = k.attempt
LEFT JOIN attempt_logs AS t ON t.run_id = n.run_id AND t.attempt = n.attempt AND t.seq = n.seq
