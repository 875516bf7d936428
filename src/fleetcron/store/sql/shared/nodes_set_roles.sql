-- A node does less from now on. No row: it was given up meanwhile, or has left.
UPDATE nodes SET roles = :roles WHERE node_id = :node_id RETURNING node_id
