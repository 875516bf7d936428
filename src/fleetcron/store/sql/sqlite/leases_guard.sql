-- Who holds a run, which stays so until the end of the transaction.
SELECT attempt, node_id FROM leases WHERE run_id = :run_id
