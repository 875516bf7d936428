-- What a worker needs of definitions, by their revisions.
SELECT r.job_id, r.revision, r.after -> 'run' AS run, r.after -> 'payload' AS payload, r.after ->> 'timeout' AS timeout,
    r.after -> 'retry' AS retry
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'revision' AS revision FROM json_each(:rows)) AS n
JOIN job_revisions AS r ON r.job_id = n.job_id AND r.revision = n.revision
