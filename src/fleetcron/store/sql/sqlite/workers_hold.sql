-- The row of a worker that claims. It may be renewed meanwhile; whoever declares it lost waits, or was first.
SELECT batch FROM workers WHERE node_id = :node_id
