-- Those of the shards that are free, whose lease has run out, or that are the node's own.
SELECT t.shard, t.term, l.node_id, l.term AS held_term
FROM shard_terms AS t
LEFT JOIN shard_leases AS l ON l.region = t.region AND l.shard = t.shard
WHERE t.region = :region
    AND t.shard IN (SELECT value FROM json_each(:shards))
    AND (l.node_id IS NULL OR l.node_id = :node_id OR l.expires_ms <= db_now_ms())
ORDER BY t.shard
