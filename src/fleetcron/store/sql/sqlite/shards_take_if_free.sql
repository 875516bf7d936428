-- Take shards that nobody holds or whose lease has run out.
INSERT INTO shard_leases (region, shard, node_id, term, taken_ms, expires_ms)
SELECT
    value ->> 'region', value ->> 'shard', :node_id, value ->> 'term', db_now_ms(), db_now_ms() + :ttl_ms
FROM json_each(:held) WHERE true
ON CONFLICT (region, shard) DO UPDATE
SET node_id = excluded.node_id, term = excluded.term, taken_ms = excluded.taken_ms, expires_ms = excluded.expires_ms
WHERE shard_leases.expires_ms <= db_now_ms()
RETURNING region, shard, term
