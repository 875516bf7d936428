-- Leave of gaps what is not decided yet; only the returned ones were where they had been read.
UPDATE gaps
SET from_ms = n.rest_from_ms, to_ms = n.rest_to_ms, trimmed = 1
FROM (
    SELECT value ->> 'gap_id' AS gap_id, value ->> 'from_ms' AS from_ms, value ->> 'trimmed' AS trimmed,
           value ->> 'noticed_ms' AS noticed_ms, value ->> 'rest_from_ms' AS rest_from_ms, value ->> 'rest_to_ms' AS rest_to_ms
    FROM json_each(:rows)
) AS n
WHERE gaps.gap_id = n.gap_id AND gaps.from_ms = n.from_ms AND gaps.trimmed = n.trimmed
    AND gaps.noticed_ms = n.noticed_ms
RETURNING gaps.gap_id AS gap_id
