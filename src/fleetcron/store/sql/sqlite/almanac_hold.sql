-- The epoch of the almanac, which stays until the end of the transaction.
SELECT epoch FROM almanac_epoch WHERE one = 1
