-- Declare a worker lost, if it has not moved since it was watched.
DELETE FROM workers WHERE node_id = :node_id AND beat = :beat AND (expires_ms <= db_now_ms() OR CAST(:gone AS INTEGER)
    = 1)
RETURNING node_id
