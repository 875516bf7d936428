-- Take a request: its key is new or too old to count, or whoever began it has vanished. No row: somebody has it.
INSERT INTO idempotency (scope, key, request, owner, started_ms)
VALUES (:scope, :key, :request, :owner, db_now_ms())
ON CONFLICT (scope, key) DO UPDATE SET request = excluded.request, owner = excluded.owner,
    started_ms = excluded.started_ms, finished_ms = NULL, status = NULL, headers = NULL, body = NULL
WHERE idempotency.started_ms <= db_now_ms() - :kept_ms
    OR (idempotency.finished_ms IS NULL AND idempotency.request = excluded.request
        AND idempotency.started_ms <= db_now_ms() - :stale_ms)
RETURNING started_ms
