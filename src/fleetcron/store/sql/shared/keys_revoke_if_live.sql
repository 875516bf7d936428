-- Revoke a key that is not revoked yet; if a tenant is named, only one of this tenant.
UPDATE access_keys SET revoked_ms = db_now_ms(), revoked_by = :actor, revoked_why = :reason
WHERE key_id = :key_id AND revoked_ms IS NULL AND (CAST(:tenant AS TEXT) IS NULL OR tenant = :tenant)
RETURNING *
