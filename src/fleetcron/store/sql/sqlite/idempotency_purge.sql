-- Forget requests that are too old to count, some of them.
DELETE FROM idempotency WHERE (scope, key) IN (
    SELECT scope, key FROM idempotency WHERE started_ms <= db_now_ms() - :kept_ms ORDER BY started_ms LIMIT :most)
RETURNING key
