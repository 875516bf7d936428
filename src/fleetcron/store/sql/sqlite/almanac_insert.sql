-- Write what holds from the new epoch on, and from which instant.
INSERT INTO almanac (kind, tenant, name, epoch, hash, release, noted_ms)
SELECT n.kind, n.tenant, n.name, :epoch, n.hash, n.release, :at_ms
FROM (
    SELECT value ->> 'kind' AS kind, value ->> 'tenant' AS tenant, value ->> 'name' AS name, value ->> 'hash' AS
        hash, value ->> 'release' AS release
    FROM json_each(:rows)
) AS n
