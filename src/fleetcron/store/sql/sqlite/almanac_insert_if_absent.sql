-- Let the fleet know zones and calendars that it has not met yet.
INSERT INTO almanac (kind, tenant, name, epoch, hash, release, noted_ms)
SELECT n.kind, n.tenant, n.name, :epoch, n.hash, n.release, db_now_ms()
FROM (
    SELECT value ->> 'kind' AS kind, value ->> 'tenant' AS tenant, value ->> 'name' AS name, value ->> 'hash' AS
        hash, value ->> 'release' AS release
    FROM json_each(:rows)
) AS n
WHERE NOT EXISTS (SELECT 1 FROM almanac AS a WHERE a.kind = n.kind AND a.tenant = n.tenant AND a.name = n.name)
ON CONFLICT DO NOTHING
