-- Give a request back that was not carried out: it may be asked again at once.
DELETE FROM idempotency WHERE scope = :scope AND key = :key AND owner = :owner AND finished_ms IS NULL
RETURNING key
