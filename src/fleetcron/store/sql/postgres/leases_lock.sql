-- The leases of these runs, which stay as they are until the end of the transaction.
SELECT run_id, attempt, job_id, node_id, claim_key, cancel FROM leases
WHERE run_id IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(CAST(:ids AS TEXT) AS jsonb)) AS v (value))
ORDER BY run_id
FOR UPDATE
