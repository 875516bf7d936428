-- Note which zones and calendars timings ask.
INSERT INTO timing_parts (kind, tenant, name, timing_id)
SELECT kind, tenant, name, timing_id
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (kind TEXT, tenant TEXT, name TEXT, timing_id BIGINT)
WHERE true
ON CONFLICT DO NOTHING
