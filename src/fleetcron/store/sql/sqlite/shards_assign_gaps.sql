-- Move the gaps of jobs to other shards.
UPDATE gaps
SET shard = n.shard
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'shard' AS shard FROM json_each(:rows)) AS n
WHERE gaps.job_id = n.job_id AND gaps.shard <> n.shard
