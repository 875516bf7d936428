-- Let parked runs of a pool be looked at whose time has come.
UPDATE queue SET gate = NULL, key = NULL, look_ms = NULL
WHERE pool = :pool AND look_ms <= :now_ms
