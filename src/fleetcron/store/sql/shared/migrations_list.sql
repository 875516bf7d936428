-- The migrations that were applied, in order.
SELECT number, name, checksum, at_ms, program FROM migrations ORDER BY number
