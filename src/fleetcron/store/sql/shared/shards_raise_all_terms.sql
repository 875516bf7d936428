-- Whoever held a shard under the old number of shards must not write any more.
UPDATE shard_terms SET term = term + 1
