-- How far attempts are.
UPDATE leases SET progress = n.share, note = n.note
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (run_id BIGINT, attempt INTEGER, share DOUBLE PRECISION, note TEXT)
WHERE leases.run_id = n.run_id AND leases.attempt = n.attempt AND leases.node_id = :node_id
