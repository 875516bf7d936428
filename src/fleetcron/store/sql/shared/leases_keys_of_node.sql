-- Run, attempt, claim, pool and lane of everything that a node holds, and when it was claimed and due: no attempt begins before both.
SELECT run_id, attempt, batch, pool, lane, claimed_ms, due_ms FROM leases WHERE node_id = :node_id ORDER BY run_id
