-- Terms rise with every take; a stale owner's writes are refused from here on.
UPDATE shard_terms
SET term = h.term
FROM jsonb_to_recordset(CAST(:held AS jsonb)) AS h (region TEXT, shard INTEGER, term BIGINT)
WHERE shard_terms.region = h.region AND shard_terms.shard = h.shard AND shard_terms.term < h.term
