-- Let these runs be looked at again, if they still wait there.
UPDATE queue SET gate = NULL, key = NULL, look_ms = NULL
WHERE gate = :gate AND run_id IN (SELECT value FROM json_each(:ids))
RETURNING run_id
