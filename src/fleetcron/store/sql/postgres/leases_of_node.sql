-- Everything that a node holds.
SELECT * FROM leases WHERE node_id = :node_id ORDER BY run_id
FOR UPDATE
