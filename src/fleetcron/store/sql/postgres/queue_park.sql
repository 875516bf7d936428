-- Say what runs wait for.
UPDATE queue SET gate = n.gate, key = n.key, look_ms = n.look_ms, since_ms = coalesce(queue.since_ms, :now_ms)
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (run_id BIGINT, gate TEXT, key TEXT, look_ms BIGINT)
WHERE queue.run_id = n.run_id AND queue.gate IS NULL
