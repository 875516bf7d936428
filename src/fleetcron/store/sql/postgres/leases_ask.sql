-- Ask attempts to stop.
UPDATE leases SET cancel = n.reason
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (run_id BIGINT, reason TEXT)
WHERE leases.run_id = n.run_id AND leases.node_id IS NOT NULL AND leases.cancel IS NULL
RETURNING leases.run_id, leases.node_id
