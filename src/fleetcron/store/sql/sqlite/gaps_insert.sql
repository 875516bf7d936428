-- Note stretches of the past that are not decided yet.
INSERT INTO gaps (job_id, region, shard, from_ms, to_ms, cause, policy, revision, timing_id, almanac, noticed_ms,
    trimmed)
SELECT job_id, region, shard, from_ms, to_ms, cause, policy, revision, timing_id, almanac, noticed_ms, trimmed
FROM (
    SELECT value ->> 'job_id' AS job_id, value ->> 'region' AS region, value ->> 'shard' AS shard, value ->>
        'from_ms' AS from_ms, value ->> 'to_ms' AS to_ms, value ->> 'cause' AS cause, value ->> 'policy' AS
        policy, value ->> 'revision' AS revision, value ->> 'timing_id' AS timing_id, value ->> 'almanac' AS
        almanac, value ->> 'noticed_ms' AS noticed_ms, value ->> 'trimmed' AS trimmed
    FROM json_each(:rows)
) AS n
