-- Move the cursors of jobs to other shards.
UPDATE cursors
SET shard = n.shard
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, shard INTEGER)
WHERE cursors.job_id = n.job_id AND cursors.shard <> n.shard
