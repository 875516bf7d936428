-- The shards whose term is still the one that the writer holds, and the epoch of the almanac.
SELECT t.region, t.shard, e.epoch
FROM json_each(:held) AS h
JOIN shard_terms AS t ON t.region = h.value ->> 'region' AND t.shard = h.value ->> 'shard' AND t.term = h.value ->> 'term'
CROSS JOIN almanac_epoch AS e
