-- Keep the answer to a request. No row: it is finished, or somebody else has taken it over.
UPDATE idempotency SET finished_ms = db_now_ms(), status = :status, headers = :headers, body = :body
WHERE scope = :scope AND key = :key AND owner = :owner AND finished_ms IS NULL
RETURNING finished_ms
