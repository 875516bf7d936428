-- The number of shards of the fleet.
SELECT value FROM fleet WHERE key = 'shards'
