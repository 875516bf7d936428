-- What became of a request.
SELECT request, owner, started_ms, finished_ms, status, headers, body FROM idempotency
WHERE scope = :scope AND key = :key
