-- Give shards back. The terms stay, so that the next owner's is higher.
DELETE FROM shard_leases
WHERE node_id = :node_id AND (region, shard, term) IN (
    SELECT value ->> 'region', value ->> 'shard', value ->> 'term' FROM json_each(:held)
)
RETURNING region, shard, term
