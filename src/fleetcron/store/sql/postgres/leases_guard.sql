-- Who holds a run, which stays so until the end of the transaction: whoever ends the attempt, or gives the run to
-- another, locks the lease FOR UPDATE and waits. Claims that only ask who has the key, and progress, do not.
SELECT attempt, node_id FROM leases WHERE run_id = :run_id
FOR KEY SHARE
