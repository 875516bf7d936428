-- Remember when the next start of tenants is allowed.
INSERT INTO rates (tenant, next_us) SELECT tenant, next_us FROM (SELECT value ->> 'tenant' AS tenant,
    value ->> 'next_us' AS next_us FROM json_each(:rows)) AS n
WHERE true
ON CONFLICT (tenant) DO UPDATE SET next_us = excluded.next_us
