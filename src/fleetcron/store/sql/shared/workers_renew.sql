-- One renewal for everything that a worker holds; nothing is returned if it was declared lost.
UPDATE workers SET beat = beat + 1, expires_ms = db_now_ms() + :ttl_ms WHERE node_id = :node_id
RETURNING beat, expires_ms, started_ms
