-- All nodes, for people and for spreading the shards.
SELECT
    node_id, host, pid, roles, region, version, zone_release, started_ms, seen_ms, expires_ms, clock_offset_ms
FROM nodes
ORDER BY node_id
