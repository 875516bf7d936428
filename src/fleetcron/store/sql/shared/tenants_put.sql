-- Set the share and the limits of a tenant.
INSERT INTO tenants (tenant, weight, max_jobs, max_in_flight, rate_per_s, burst, max_payload, updated_ms)
VALUES (:tenant, :weight, :max_jobs, :max_in_flight, :rate_per_s, :burst, :max_payload, :now_ms)
ON CONFLICT (tenant) DO UPDATE SET weight = excluded.weight, max_jobs = excluded.max_jobs,
    max_in_flight = excluded.max_in_flight, rate_per_s = excluded.rate_per_s, burst = excluded.burst,
    max_payload = excluded.max_payload, updated_ms = excluded.updated_ms
