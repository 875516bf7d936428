-- Keep zone tables and calendars by their hash.
INSERT INTO almanac_bodies (hash, body)
SELECT hash, body
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (hash TEXT, body TEXT)
WHERE true
ON CONFLICT (hash) DO NOTHING
