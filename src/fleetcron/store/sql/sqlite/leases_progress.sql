-- How far attempts are.
UPDATE leases SET progress = n.share, note = n.note
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'attempt' AS attempt, value ->> 'share' AS share,
    value ->> 'note' AS note FROM json_each(:rows)) AS n
WHERE leases.run_id = n.run_id AND leases.attempt = n.attempt AND leases.node_id = :node_id
