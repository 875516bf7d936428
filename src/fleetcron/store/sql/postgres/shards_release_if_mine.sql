-- Give shards back. The terms stay, so that the next owner's is higher.
DELETE FROM shard_leases
WHERE node_id = :node_id AND (region, shard, term) IN (
    SELECT h.region, h.shard, h.term
    FROM jsonb_to_recordset(CAST(:held AS jsonb)) AS h (region TEXT, shard INTEGER, term BIGINT)
)
RETURNING region, shard, term
