-- The gaps of these shards that are to be decided, oldest first; without room not those that only wait for it;
-- without timings (a JSON list) that nobody here can read.
SELECT g.gap_id, g.job_id, g.from_ms, g.to_ms, g.cause, g.policy, g.revision, g.timing_id, g.almanac, g.noticed_ms,
    g.trimmed
FROM jsonb_to_recordset(CAST(:held AS jsonb)) AS n (region TEXT, shard INTEGER)
JOIN gaps AS g ON g.region = n.region AND g.shard = n.shard AND g.noticed_ms IS NOT NULL
WHERE (g.trimmed = 0 OR CAST(:room AS BIGINT) > 0) AND g.timing_id NOT IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:without AS jsonb)) AS v (value))
ORDER BY g.gap_id
LIMIT :most
