-- The timings that ask any of these zones or calendars.
SELECT DISTINCT t.timing_id, t.body
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (kind TEXT, tenant TEXT, name TEXT)
JOIN timing_parts AS p ON p.kind = n.kind AND p.tenant = n.tenant AND p.name = n.name
JOIN timings AS t ON t.timing_id = p.timing_id
ORDER BY t.timing_id
