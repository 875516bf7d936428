-- Who holds which shard, until when.
SELECT region, shard, node_id, term, taken_ms, expires_ms FROM shard_leases ORDER BY region, shard
