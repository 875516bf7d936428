-- Say again that a node has started. No row: the id belongs to another process.
UPDATE nodes
SET seen_ms = db_now_ms(), expires_ms = db_now_ms() + :ttl_ms
WHERE node_id = :node_id AND host = :host AND pid = :pid
RETURNING seen_ms
