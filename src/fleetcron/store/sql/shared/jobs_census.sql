-- How many jobs there are of each tenant, in each pool and state.
SELECT tenant, pool, state, count(*) AS jobs FROM jobs
WHERE deleted_ms IS NULL AND (CAST(:tenant AS TEXT) IS NULL OR tenant = :tenant)
GROUP BY tenant, pool, state
