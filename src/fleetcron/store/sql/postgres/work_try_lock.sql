-- As work_lock, but whoever comes second does not wait: the work is being done.
SELECT pg_try_advisory_xact_lock(hashtextextended('fleetcron:' || CAST(:name AS TEXT), 0)) AS got
