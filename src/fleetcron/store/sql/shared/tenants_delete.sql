-- Give a tenant the defaults again.
DELETE FROM tenants WHERE tenant = :tenant
