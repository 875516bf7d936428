-- Begin a session of a key that is valid now and is no worker's; at the latest it ends when its key does. No row: refused, or it is there.
INSERT INTO access_sessions (digest, key_id, created_ms, expires_ms)
SELECT CAST(:digest AS TEXT), k.key_id, db_now_ms(),
    CASE WHEN k.expires_ms < db_now_ms() + :lasts_ms THEN k.expires_ms ELSE db_now_ms() + :lasts_ms END
FROM access_keys AS k
WHERE k.key_id = :key_id AND k.role <> 'worker'
    AND k.revoked_ms IS NULL AND (k.expires_ms IS NULL OR k.expires_ms > db_now_ms())
ON CONFLICT (digest) DO NOTHING
RETURNING digest
