-- Without room: of each job in these shards that has nothing to catch up on its way, the oldest gap that waits for room.
-- The next ones after a certain gap, and then from the beginning: everybody has his turn. Without timings that nobody here can read.
-- EXCEPT is never one look at all runs for each gap, whatever the planner thinks: NOT IN was, from 210,000 runs on.
WITH starved AS MATERIALIZED (
    SELECT g.job_id
    FROM jsonb_to_recordset(CAST(:held AS jsonb)) AS n (region TEXT, shard INTEGER)
    JOIN gaps AS g ON g.region = n.region AND g.shard = n.shard AND g.noticed_ms IS NOT NULL AND g.trimmed = 1
    WHERE g.timing_id NOT IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:without AS jsonb)) AS v (value))
    EXCEPT SELECT job_id FROM upcoming WHERE lane = 'catchup'
    EXCEPT SELECT job_id FROM queue WHERE lane = 'catchup'
)
SELECT g.gap_id, g.job_id, g.from_ms, g.to_ms, g.cause, g.policy, g.revision, g.timing_id, g.almanac, g.noticed_ms,
    g.trimmed
FROM starved AS s
CROSS JOIN LATERAL (
    SELECT * FROM gaps AS i
    WHERE i.job_id = s.job_id AND i.noticed_ms IS NOT NULL AND i.trimmed = 1
        AND i.timing_id NOT IN (SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(:without AS jsonb)) AS v (value))
    ORDER BY i.from_ms LIMIT 1
) AS g
ORDER BY g.gap_id <= CAST(:after_id AS BIGINT), g.gap_id
LIMIT :most
