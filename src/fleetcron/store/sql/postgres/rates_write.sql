-- Remember when the next start of tenants is allowed.
INSERT INTO rates (tenant, next_us) SELECT tenant, next_us FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (tenant
    TEXT, next_us BIGINT)
WHERE true
ON CONFLICT (tenant) DO UPDATE SET next_us = excluded.next_us
