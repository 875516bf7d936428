-- Keep a new key. No row: its id or its name is taken.
INSERT INTO access_keys (
    key_id, digest, name, role, tenant, pools, rate_per_minute, created_ms, created_by, expires_ms
)
VALUES (
    :key_id, :digest, :name, :role, :tenant, :pools, :rate_per_minute, :now_ms, :actor, :expires_ms
)
ON CONFLICT DO NOTHING
RETURNING key_id
