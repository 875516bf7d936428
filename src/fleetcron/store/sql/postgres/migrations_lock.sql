-- Let one migrator of this schema work at a time, until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('fleetcron migrate ' || current_setting('search_path'), 0))
