-- All workers, by name.
SELECT node_id, process, pools, lacks, beat, started_ms, expires_ms FROM workers ORDER BY node_id
