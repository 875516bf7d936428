-- A worker ends.
DELETE FROM workers WHERE node_id = :node_id RETURNING node_id
