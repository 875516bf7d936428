-- What a worker needs of the definitions of all runs that a node holds.
SELECT l.run_id, CAST(v.after -> 'run' AS TEXT) AS run, CAST(v.after -> 'payload' AS TEXT) AS payload,
    v.after ->> 'timeout' AS timeout, CAST(v.after -> 'retry' AS TEXT) AS retry
FROM leases AS l
JOIN runs AS r ON r.run_id = l.run_id
JOIN job_revisions AS v ON v.job_id = r.job_id AND v.revision = r.revision
WHERE l.node_id = :node_id
