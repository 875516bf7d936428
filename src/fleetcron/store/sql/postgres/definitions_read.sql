-- Definitions as they were when runs were planned.
SELECT r.job_id, r.revision, r.after AS definition
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, revision INTEGER)
JOIN job_revisions AS r ON r.job_id = n.job_id AND r.revision = n.revision
