-- The schedulers that count as alive.
SELECT node_id FROM nodes
WHERE ',' || roles || ',' LIKE '%,scheduler,%' AND expires_ms > db_now_ms()
ORDER BY node_id
