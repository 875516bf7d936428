-- Runs whose handler no worker of the pool has; they are looked at again by and by.
UPDATE queue SET gate = 'handler', key = handler, look_ms = :look_ms, since_ms = coalesce(since_ms, :now_ms)
WHERE pool = :pool AND gate IS NULL AND handler IN (SELECT value FROM jsonb_array_elements_text(CAST(:handlers AS
    jsonb)) AS v (value))
RETURNING run_id, claim_key, leased
