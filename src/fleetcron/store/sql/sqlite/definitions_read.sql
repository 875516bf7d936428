-- Definitions as they were when runs were planned.
SELECT r.job_id, r.revision, r.after AS definition
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'revision' AS revision FROM json_each(:rows)) AS n
JOIN job_revisions AS r ON r.job_id = n.job_id AND r.revision = n.revision
