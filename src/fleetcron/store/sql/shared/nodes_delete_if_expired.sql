-- Give up the nodes that were silent for too long.
DELETE FROM nodes WHERE expires_ms <= db_now_ms() RETURNING node_id, host, pid, roles, region, seen_ms, expires_ms
