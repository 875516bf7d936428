-- What somebody has set for these tenants.
SELECT tenant, weight, max_in_flight, rate_per_s, burst FROM tenants
WHERE tenant IN (SELECT value FROM json_each(:tenants)) AND (max_in_flight IS NOT NULL OR rate_per_s IS NOT NULL)
