-- A term for shards that nobody ever held.
INSERT INTO shard_terms (region, shard, term)
SELECT CAST(:region AS TEXT), CAST(value AS INTEGER), 0
FROM jsonb_array_elements_text(CAST(:shards AS jsonb)) AS value
ORDER BY 2
ON CONFLICT (region, shard) DO NOTHING
