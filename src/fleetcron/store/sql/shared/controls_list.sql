-- What is switched, also what is over: of one name, or all of it.
SELECT scope, name, percent, retries, backoff, until_ms, reason, actor, updated_ms FROM controls
WHERE CAST(:scope AS TEXT) IS NULL OR (scope = :scope AND name = :name)
ORDER BY scope, name
