-- What a worker needs of definitions, by their revisions.
SELECT r.job_id, r.revision, CAST(r.after -> 'run' AS TEXT) AS run, CAST(r.after -> 'payload' AS TEXT) AS payload,
    r.after ->> 'timeout' AS timeout, CAST(r.after -> 'retry' AS TEXT) AS retry
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, revision INTEGER)
JOIN job_revisions AS r ON r.job_id = n.job_id AND r.revision = n.revision
