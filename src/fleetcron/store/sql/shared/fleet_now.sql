-- What time it is for the fleet, and which tables it plans with.
SELECT db_now_ms() AS now_ms, epoch FROM almanac_epoch WHERE one = 1
