-- Keep zone tables and calendars by their hash.
INSERT INTO almanac_bodies (hash, body)
SELECT hash, body
FROM (
    SELECT value ->> 'hash' AS hash, value ->> 'body' AS body
    FROM json_each(:rows)
) AS n
WHERE true
ON CONFLICT (hash) DO NOTHING
