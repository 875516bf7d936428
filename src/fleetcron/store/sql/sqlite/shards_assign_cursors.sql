-- Move the cursors of jobs to other shards.
UPDATE cursors
SET shard = n.shard
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'shard' AS shard FROM json_each(:rows)) AS n
WHERE cursors.job_id = n.job_id AND cursors.shard <> n.shard
