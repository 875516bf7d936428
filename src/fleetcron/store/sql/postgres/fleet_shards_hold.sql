-- The number of shards of the fleet, which stays until the end of the transaction.
SELECT value FROM fleet WHERE key = 'shards' FOR SHARE
