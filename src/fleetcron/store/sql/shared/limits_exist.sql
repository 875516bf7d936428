-- Whether anybody has set a cap or a rate for a tenant.
SELECT CASE WHEN EXISTS (SELECT 1 FROM tenants WHERE max_in_flight IS NOT NULL OR rate_per_s IS NOT NULL)
    THEN 1 ELSE 0 END AS there
