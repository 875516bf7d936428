-- Compare and renew in one step: node and term must match. A lease that ran out and was not taken may be renewed.
UPDATE shard_leases
SET expires_ms = db_now_ms() + :ttl_ms
FROM (
    SELECT value ->> 'region' AS region, value ->> 'shard' AS shard, value ->> 'term' AS term FROM json_each(:held)
) AS h
WHERE shard_leases.region = h.region AND shard_leases.shard = h.shard
    AND shard_leases.node_id = :node_id AND shard_leases.term = h.term
RETURNING shard_leases.region, shard_leases.shard, shard_leases.term
