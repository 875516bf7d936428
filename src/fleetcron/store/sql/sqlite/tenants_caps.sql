-- What somebody has set for the jobs of these tenants.
SELECT tenant, max_jobs, max_payload FROM tenants WHERE tenant IN (SELECT value FROM json_each(:tenants))
