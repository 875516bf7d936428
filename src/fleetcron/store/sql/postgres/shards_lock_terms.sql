-- The terms of shards, about to rise. Those that a plan or another taker has in its hands are left for the next time.
SELECT shard
FROM shard_terms
WHERE region = :region
    AND shard IN (SELECT CAST(value AS INTEGER) FROM jsonb_array_elements_text(CAST(:shards AS jsonb)) AS value)
ORDER BY shard
FOR NO KEY UPDATE SKIP LOCKED
