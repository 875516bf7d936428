-- Which key has a name now: of a tenant, or of the whole fleet.
SELECT key_id FROM access_keys
WHERE coalesce(tenant, '') = coalesce(CAST(:tenant AS TEXT), '') AND name = :name AND revoked_ms IS NULL
