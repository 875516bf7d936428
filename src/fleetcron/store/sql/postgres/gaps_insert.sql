-- Note stretches of the past that are not decided yet.
INSERT INTO gaps (job_id, region, shard, from_ms, to_ms, cause, policy, revision, timing_id, almanac, noticed_ms,
    trimmed)
SELECT job_id, region, shard, from_ms, to_ms, cause, policy, revision, timing_id, almanac, noticed_ms, trimmed
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, region TEXT, shard INTEGER, from_ms BIGINT, to_ms
    BIGINT, cause TEXT, policy TEXT, revision INTEGER, timing_id BIGINT, almanac BIGINT, noticed_ms BIGINT, trimmed
    INTEGER)
