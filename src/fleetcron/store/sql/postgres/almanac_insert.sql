-- Write what holds from the new epoch on, and from which instant.
INSERT INTO almanac (kind, tenant, name, epoch, hash, release, noted_ms)
SELECT n.kind, n.tenant, n.name, :epoch, n.hash, n.release, :at_ms
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (kind TEXT, tenant TEXT, name TEXT, hash TEXT, release TEXT)
