-- The leases of these runs, which stay as they are until the end of the transaction.
SELECT run_id, attempt, job_id, node_id, claim_key, cancel FROM leases WHERE run_id IN (SELECT value FROM json_each(:ids))
ORDER BY run_id
