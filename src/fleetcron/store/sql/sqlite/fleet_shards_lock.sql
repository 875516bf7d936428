-- The number of shards of the fleet, about to be changed: nobody joins and no job is created meanwhile.
SELECT value FROM fleet WHERE key = 'shards'
