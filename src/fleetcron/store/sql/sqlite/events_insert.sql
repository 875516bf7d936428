-- Note what left the normal path.
INSERT INTO events (at_ms, kind, count, job_id, node_id, actor, detail)
VALUES (db_now_ms(), :kind, :count, :job_id, :node_id, :actor, :detail)
