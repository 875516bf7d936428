-- One change of a tenant's dependencies at a time, until the end of the transaction. (SQLite has one writer anyway.)
SELECT pg_advisory_xact_lock(hashtextextended('fleetcron:upstreams:' || CAST(:tenant AS TEXT), 0))
