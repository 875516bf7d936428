-- What a worker needs of the definitions of all runs that a node holds, as their jobs are now.
SELECT l.run_id, CAST(v.after -> 'run' AS TEXT) AS run, CAST(v.after -> 'payload' AS TEXT) AS payload,
    v.after ->> 'timeout' AS timeout, CAST(v.after -> 'retry' AS TEXT) AS retry
FROM leases AS l
JOIN jobs AS j ON j.job_id = l.job_id
JOIN job_revisions AS v ON v.job_id = j.job_id AND v.revision = j.revision
WHERE l.node_id = :node_id
