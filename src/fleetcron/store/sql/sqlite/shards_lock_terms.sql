-- The terms of shards, about to rise.
SELECT shard FROM shard_terms WHERE region = :region AND shard IN (SELECT value FROM json_each(:shards)) ORDER BY shard
