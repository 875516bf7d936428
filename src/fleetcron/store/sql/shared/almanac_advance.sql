-- Begin a new epoch of the almanac.
UPDATE almanac_epoch SET epoch = epoch + 1 WHERE one = 1 RETURNING epoch
