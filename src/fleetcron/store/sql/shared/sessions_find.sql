-- A session that has not ended, with its key, which must still be valid.
SELECT db_now_ms() AS now_ms, s.created_ms AS began_ms, s.expires_ms AS ends_ms, k.*
FROM access_sessions AS s
JOIN access_keys AS k ON k.key_id = s.key_id
WHERE s.digest = :digest AND s.expires_ms > db_now_ms()
    AND k.revoked_ms IS NULL AND (k.expires_ms IS NULL OR k.expires_ms > db_now_ms())
