-- When the next start of these tenants is allowed.
SELECT tenant, next_us FROM rates WHERE tenant IN (SELECT value FROM json_each(:tenants))
