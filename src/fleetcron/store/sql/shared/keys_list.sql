-- Keys by filter, a page of them, by tenant and name; those of the whole fleet come first.
SELECT k.* FROM access_keys AS k
WHERE (CAST(:tenant AS TEXT) IS NULL OR k.tenant = :tenant)
    AND (CAST(:name AS TEXT) IS NULL OR k.name = :name)
    AND (CAST(:role AS TEXT) IS NULL OR k.role = :role)
    AND (CAST(:state AS TEXT) IS NULL OR :state = CASE WHEN k.revoked_ms IS NOT NULL THEN 'revoked'
                                                       WHEN k.expires_ms <= :now_ms THEN 'expired'
                                                       ELSE 'active' END)
    AND (CAST(:after AS TEXT) IS NULL OR (coalesce(k.tenant, ''), k.name, k.key_id) > (
        SELECT coalesce(a.tenant, ''), a.name, a.key_id FROM access_keys AS a WHERE a.key_id = :after))
ORDER BY coalesce(k.tenant, ''), k.name, k.key_id
LIMIT :most
