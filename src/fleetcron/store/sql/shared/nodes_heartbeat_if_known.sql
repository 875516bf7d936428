-- A node lives. No row: it was given up meanwhile and has to announce itself again.
UPDATE nodes
SET seen_ms = db_now_ms(), expires_ms = db_now_ms() + :ttl_ms, clock_offset_ms = :clock_offset_ms
WHERE node_id = :node_id
RETURNING seen_ms
