-- Forget the leases that have run out.
DELETE FROM shard_leases WHERE expires_ms <= db_now_ms()
