-- Let the fleet know zones and calendars that it has not met yet.
INSERT INTO almanac (kind, tenant, name, epoch, hash, release, noted_ms)
SELECT n.kind, n.tenant, n.name, :epoch, n.hash, n.release, db_now_ms()
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (kind TEXT, tenant TEXT, name TEXT, hash TEXT, release TEXT)
WHERE NOT EXISTS (SELECT 1 FROM almanac AS a WHERE a.kind = n.kind AND a.tenant = n.tenant AND a.name = n.name)
ON CONFLICT DO NOTHING
