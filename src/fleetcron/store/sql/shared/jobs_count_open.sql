-- How many jobs of a tenant have not ended: what its cap counts.
SELECT count(*) AS jobs FROM jobs WHERE deleted_ms IS NULL AND state IN ('active', 'paused') AND tenant = :tenant
