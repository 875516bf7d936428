-- A worker begins, and says what it refuses.
INSERT INTO workers (node_id, process, pools, lacks, beat, batch, started_ms, expires_ms)
VALUES (:node_id, :process, :pools, :lacks, 1, '', db_now_ms(), db_now_ms() + :ttl_ms)
ON CONFLICT (node_id) DO NOTHING
