-- Take shards that nobody holds or whose lease has run out.
INSERT INTO shard_leases (region, shard, node_id, term, taken_ms, expires_ms)
SELECT h.region, h.shard, CAST(:node_id AS TEXT), h.term, db_now_ms(), db_now_ms() + CAST(:ttl_ms AS BIGINT)
FROM jsonb_to_recordset(CAST(:held AS jsonb)) AS h (region TEXT, shard INTEGER, term BIGINT)
ORDER BY h.region, h.shard
ON CONFLICT (region, shard) DO UPDATE
SET node_id = excluded.node_id, term = excluded.term, taken_ms = excluded.taken_ms, expires_ms = excluded.expires_ms
WHERE shard_leases.expires_ms <= db_now_ms()
RETURNING region, shard, term
