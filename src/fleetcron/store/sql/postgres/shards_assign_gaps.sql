-- Move the gaps of jobs to other shards.
UPDATE gaps
SET shard = n.shard
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, shard INTEGER)
WHERE gaps.job_id = n.job_id AND gaps.shard <> n.shard
