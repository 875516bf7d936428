-- The leases that have not run out.
SELECT region, shard, node_id FROM shard_leases WHERE expires_ms > db_now_ms() ORDER BY region, shard
