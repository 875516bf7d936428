-- Ask attempts to stop.
UPDATE leases SET cancel = n.reason
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'reason' AS reason FROM json_each(:rows)) AS n
WHERE leases.run_id = n.run_id AND leases.node_id IS NOT NULL AND leases.cancel IS NULL
RETURNING leases.run_id, leases.node_id
