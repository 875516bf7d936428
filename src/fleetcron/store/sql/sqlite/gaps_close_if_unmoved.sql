-- Remove gaps that are decided; only the returned ones were where they had been read.
DELETE FROM gaps
WHERE (gap_id, from_ms, trimmed, noticed_ms) IN (
    SELECT value ->> 'gap_id', value ->> 'from_ms', value ->> 'trimmed', value ->> 'noticed_ms' FROM json_each(:rows)
)
RETURNING gap_id
