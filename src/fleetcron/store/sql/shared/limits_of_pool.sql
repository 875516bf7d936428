-- What somebody has set for a pool.
SELECT slots, per_tenant, per_type FROM pools WHERE pool = :pool
