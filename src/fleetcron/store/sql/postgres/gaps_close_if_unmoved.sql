-- Remove gaps that are decided; only the returned ones were where they had been read.
DELETE FROM gaps
USING jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (gap_id BIGINT, from_ms BIGINT, trimmed INTEGER, noticed_ms BIGINT)
WHERE gaps.gap_id = n.gap_id AND gaps.from_ms = n.from_ms AND gaps.trimmed = n.trimmed
    AND gaps.noticed_ms = n.noticed_ms
RETURNING gaps.gap_id AS gap_id
