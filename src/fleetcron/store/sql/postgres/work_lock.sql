-- One claim at a time in a pool, until the end of the transaction. (SQLite has one writer anyway.)
SELECT pg_advisory_xact_lock(hashtextextended('fleetcron:' || CAST(:name AS TEXT), 0))
