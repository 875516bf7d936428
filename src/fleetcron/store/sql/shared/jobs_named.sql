-- All jobs that ever had a name, deleted ones too; the newest first.
SELECT * FROM jobs WHERE tenant = :tenant AND name = :name ORDER BY created_ms DESC, job_id DESC LIMIT :most
