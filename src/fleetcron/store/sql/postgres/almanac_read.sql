-- The zone tables and calendars that hold at an epoch.
SELECT a.kind, a.tenant, a.name, a.hash, a.release, a.epoch, a.noted_ms, b.body
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (kind TEXT, tenant TEXT, name TEXT)
JOIN almanac AS a ON a.kind = n.kind AND a.tenant = n.tenant AND a.name = n.name
    AND a.epoch = (SELECT max(m.epoch) FROM almanac AS m
                   WHERE m.kind = n.kind AND m.tenant = n.tenant AND m.name = n.name AND m.epoch <= :epoch)
JOIN almanac_bodies AS b ON b.hash = a.hash
ORDER BY a.kind, a.tenant, a.name
