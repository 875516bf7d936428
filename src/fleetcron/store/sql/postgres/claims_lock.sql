-- One claim at a time in a pool, until the end of the transaction, and none while the caps of tenants change: a claim that
-- has read that there are none does not count. Claims of other pools share that lock, and do not wait for each other.
SELECT pg_advisory_xact_lock(hashtextextended('fleetcron:pool:' || CAST(:pool AS TEXT), 0)),
    pg_advisory_xact_lock_shared(hashtextextended('fleetcron:caps', 0))
