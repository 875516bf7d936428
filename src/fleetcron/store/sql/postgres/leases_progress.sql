-- How far attempts are. Locked in the order of the runs, as everybody locks leases: a claim could wait for one of them
-- and we for another of its own.
WITH mine AS MATERIALIZED (
    SELECT l.run_id, l.attempt, n.share, n.note
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (run_id BIGINT, attempt INTEGER, share DOUBLE PRECISION, note TEXT)
    JOIN leases AS l ON l.run_id = n.run_id AND l.attempt = n.attempt AND l.node_id = :node_id
    ORDER BY l.run_id
    FOR NO KEY UPDATE OF l
)
UPDATE leases SET progress = mine.share, note = mine.note
FROM mine
WHERE leases.run_id = mine.run_id
