-- The epoch of the almanac, about to be changed: nobody plans meanwhile.
SELECT epoch FROM almanac_epoch WHERE one = 1
