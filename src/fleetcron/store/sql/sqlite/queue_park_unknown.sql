-- Runs whose handler no worker of the pool has; they are looked at again by and by.
UPDATE queue SET gate = 'handler', key = handler, look_ms = :look_ms, since_ms = coalesce(since_ms, :now_ms)
WHERE pool = :pool AND gate IS NULL AND handler IN (SELECT value FROM json_each(:handlers))
RETURNING run_id, claim_key, leased
