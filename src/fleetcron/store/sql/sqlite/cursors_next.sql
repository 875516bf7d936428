-- The next instant at which a job of these shards is due.
SELECT min((SELECT min(c.next_due_ms) FROM cursors AS c
            WHERE c.region = h.value ->> 'region' AND c.shard = h.value ->> 'shard' AND c.next_due_ms IS NOT NULL)) AS next_due_ms
FROM json_each(:held) AS h
