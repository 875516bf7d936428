-- Give back all that a node holds. The terms stay, so that the next owner's is higher.
DELETE FROM shard_leases WHERE node_id = :node_id RETURNING region, shard, term
