-- Remove gaps that are decided; only the returned ones were where they had been read.
DELETE FROM gaps
WHERE EXISTS (
    SELECT 1 FROM (
    SELECT value ->> 'gap_id' AS gap_id, value ->> 'from_ms' AS from_ms, value ->> 'trimmed' AS trimmed
    FROM json_each(:rows)
) AS n
    WHERE gaps.gap_id = n.gap_id AND gaps.from_ms = n.from_ms AND gaps.trimmed = n.trimmed
)
RETURNING gap_id
