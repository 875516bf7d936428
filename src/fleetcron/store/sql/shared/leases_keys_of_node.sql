-- Run and attempt of everything that a node holds.
SELECT run_id, attempt FROM leases WHERE node_id = :node_id ORDER BY run_id
