-- Compare and renew in one step: node and term must match. A lease that ran out and was not taken may be renewed.
WITH mine AS (
    SELECT l.region, l.shard, l.term
    FROM jsonb_to_recordset(CAST(:held AS jsonb)) AS h (region TEXT, shard INTEGER, term BIGINT)
    JOIN shard_leases AS l ON l.region = h.region AND l.shard = h.shard AND l.term = h.term
    WHERE l.node_id = :node_id
    ORDER BY l.region, l.shard
    FOR NO KEY UPDATE OF l -- in one order, so that a renewal and a take-over do not wait for each other in a circle
)
UPDATE shard_leases
SET expires_ms = db_now_ms() + CAST(:ttl_ms AS BIGINT)
FROM mine
WHERE shard_leases.region = mine.region AND shard_leases.shard = mine.shard
    AND shard_leases.node_id = :node_id AND shard_leases.term = mine.term
RETURNING shard_leases.region, shard_leases.shard, shard_leases.term
