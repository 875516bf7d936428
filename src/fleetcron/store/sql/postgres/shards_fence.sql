-- The shards whose term is still the one that the writer holds, and the epoch of the almanac; both stay until the end.
SELECT t.region, t.shard, e.epoch
FROM jsonb_to_recordset(CAST(:held AS jsonb)) AS h (region TEXT, shard INTEGER, term BIGINT)
JOIN shard_terms AS t ON t.region = h.region AND t.shard = h.shard AND t.term = h.term
CROSS JOIN almanac_epoch AS e
ORDER BY t.region, t.shard
FOR SHARE OF t, e
