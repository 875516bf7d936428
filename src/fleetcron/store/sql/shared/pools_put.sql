-- Set the slots and the quotas of a pool.
INSERT INTO pools (pool, slots, per_tenant, per_type, updated_ms)
VALUES (:pool, :slots, :per_tenant, :per_type, :now_ms)
ON CONFLICT (pool) DO UPDATE SET slots = excluded.slots, per_tenant = excluded.per_tenant,
    per_type = excluded.per_type, updated_ms = excluded.updated_ms
