-- Note which zones and calendars timings ask.
INSERT INTO timing_parts (kind, tenant, name, timing_id)
SELECT kind, tenant, name, timing_id
FROM (
    SELECT value ->> 'kind' AS kind, value ->> 'tenant' AS tenant, value ->> 'name' AS name, value ->> 'timing_id'
        AS timing_id
    FROM json_each(:rows)
) AS n
WHERE true
ON CONFLICT DO NOTHING
