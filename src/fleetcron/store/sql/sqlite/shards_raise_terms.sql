-- Terms rise with every take; a stale owner's writes are refused from here on.
UPDATE shard_terms
SET term = h.term
FROM (
    SELECT value ->> 'region' AS region, value ->> 'shard' AS shard, value ->> 'term' AS term FROM json_each(:held)
) AS h
WHERE shard_terms.region = h.region AND shard_terms.shard = h.shard AND shard_terms.term < h.term
