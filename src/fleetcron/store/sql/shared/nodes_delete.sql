-- A node stops.
DELETE FROM nodes WHERE node_id = :node_id RETURNING node_id
