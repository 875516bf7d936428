-- The next instant at which a job of these shards is due; without timings that nobody here can plan.
SELECT min((SELECT min(c.next_due_ms) FROM cursors AS c
            WHERE c.region = h.value ->> 'region' AND c.shard = h.value ->> 'shard' AND c.next_due_ms IS NOT NULL
            AND c.timing_id NOT IN (SELECT value FROM json_each(:without)))) AS next_due_ms
FROM json_each(:held) AS h
