-- Every zone or calendar that the fleet knows, as it holds at an epoch.
SELECT a.kind, a.tenant, a.name, a.hash, a.release, a.epoch, a.noted_ms, b.body
FROM almanac AS a
JOIN almanac_bodies AS b ON b.hash = a.hash
WHERE a.kind = :kind AND a.epoch = (
    SELECT max(m.epoch) FROM almanac AS m
    WHERE m.kind = a.kind AND m.tenant = a.tenant AND m.name = a.name AND m.epoch <= :epoch)
ORDER BY a.tenant, a.name
