-- The row of a worker that writes. Whoever declares it lost waits, or was first.
SELECT batch, started_ms, expires_ms, lacks FROM workers WHERE node_id = :node_id
FOR UPDATE
