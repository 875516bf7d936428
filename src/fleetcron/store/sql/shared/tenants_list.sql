-- What somebody has set for tenants: of one, or of all.
SELECT tenant, weight, max_jobs, max_in_flight, rate_per_s, burst, max_payload, updated_ms FROM tenants
WHERE CAST(:tenant AS TEXT) IS NULL OR tenant = :tenant
ORDER BY tenant
