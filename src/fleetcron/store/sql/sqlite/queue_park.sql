-- Say what runs wait for.
UPDATE queue SET gate = n.gate, key = n.key, look_ms = n.look_ms, since_ms = coalesce(queue.since_ms, :now_ms)
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'gate' AS gate, value ->> 'key' AS key,
    value ->> 'look_ms' AS look_ms FROM json_each(:rows)) AS n
WHERE queue.run_id = n.run_id AND queue.gate IS NULL
