-- Remember that keys were used, unless that is known well enough.
UPDATE access_keys SET last_used_ms = db_now_ms()
WHERE key_id IN (SELECT value FROM json_each(:ids)) AND coalesce(last_used_ms, 0) <= db_now_ms() - :every_ms
RETURNING key_id
