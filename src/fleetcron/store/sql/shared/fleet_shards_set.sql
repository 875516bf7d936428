-- Change the number of shards of the fleet.
UPDATE fleet SET value = :shards WHERE key = 'shards'
