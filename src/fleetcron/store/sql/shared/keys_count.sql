-- How many keys are valid now.
SELECT count(*) AS keys FROM access_keys
WHERE revoked_ms IS NULL AND (expires_ms IS NULL OR expires_ms > db_now_ms())
