-- Say that a node has started. No row: it is known already.
INSERT INTO nodes (
    node_id, host, pid, roles, region, version, zone_release, started_ms, seen_ms, expires_ms, clock_offset_ms
)
VALUES (
    :node_id, :host, :pid, :roles, :region, :version, :zone_release,
    db_now_ms(), db_now_ms(), db_now_ms() + :ttl_ms, 0
)
ON CONFLICT (node_id) DO NOTHING
RETURNING seen_ms
