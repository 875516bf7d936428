-- Whom a control of this scope can mean: tenants, pools or types that have jobs, runs or limits.
SELECT DISTINCT k.name FROM (
    SELECT 'tenant' AS scope, tenant AS name FROM jobs WHERE deleted_ms IS NULL
    UNION ALL SELECT 'pool', pool FROM jobs WHERE deleted_ms IS NULL
    UNION ALL SELECT 'type', type FROM jobs WHERE deleted_ms IS NULL
    UNION ALL SELECT 'tenant', tenant FROM queue
    UNION ALL SELECT 'pool', pool FROM queue
    UNION ALL SELECT 'type', type FROM queue
    UNION ALL SELECT 'tenant', tenant FROM tenants
    UNION ALL SELECT 'pool', pool FROM pools
    UNION ALL SELECT scope, name FROM controls
) AS k
WHERE k.scope = :scope
ORDER BY k.name
