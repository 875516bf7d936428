-- Without room: of each job in these shards that has nothing to catch up on its way, the oldest gap that waits for room.
-- The next ones after a certain gap, and then from the beginning: everybody has his turn. Without timings that nobody here can read.
WITH starved AS MATERIALIZED (
    SELECT g.job_id
    FROM (
        SELECT value ->> 'region' AS region, value ->> 'shard' AS shard
        FROM json_each(:held)
    ) AS n
    JOIN gaps AS g ON g.region = n.region AND g.shard = n.shard AND g.noticed_ms IS NOT NULL AND g.trimmed = 1
    WHERE g.timing_id NOT IN (SELECT value FROM json_each(:without))
    EXCEPT SELECT job_id FROM upcoming WHERE lane = 'catchup'
    EXCEPT SELECT job_id FROM queue WHERE lane = 'catchup'
)
SELECT g.gap_id, g.job_id, g.from_ms, g.to_ms, g.cause, g.policy, g.revision, g.timing_id, g.almanac, g.noticed_ms,
    g.trimmed
FROM starved AS s
CROSS JOIN gaps AS g ON g.gap_id = (
    SELECT i.gap_id FROM gaps AS i
    WHERE i.job_id = s.job_id AND i.noticed_ms IS NOT NULL AND i.trimmed = 1
        AND i.timing_id NOT IN (SELECT value FROM json_each(:without))
    ORDER BY i.from_ms LIMIT 1)
ORDER BY g.gap_id <= :after_id, g.gap_id
LIMIT :most
