-- Note what left the normal path. (As text first: an application's connection may have a JSON codec of its own.)
INSERT INTO events (at_ms, kind, count, job_id, node_id, actor, detail)
VALUES (db_now_ms(), :kind, :count, :job_id, :node_id, :actor, CAST(CAST(:detail AS TEXT) AS jsonb))
