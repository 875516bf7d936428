-- A worker begins.
INSERT INTO workers (node_id, process, pools, lacks, beat, batch, started_ms, expires_ms)
VALUES (:node_id, :process, :pools, '{}', 1, '', db_now_ms(), db_now_ms() + :ttl_ms)
ON CONFLICT (node_id) DO NOTHING
