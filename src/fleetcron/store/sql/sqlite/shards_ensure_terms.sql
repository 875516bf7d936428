-- A term for shards that nobody ever held.
INSERT INTO shard_terms (region, shard, term)
SELECT :region, value, 0 FROM json_each(:shards) WHERE true
ON CONFLICT (region, shard) DO NOTHING
