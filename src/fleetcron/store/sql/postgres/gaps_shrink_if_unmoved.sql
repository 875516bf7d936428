-- Leave of gaps what is not decided yet; only the returned ones were where they had been read.
UPDATE gaps
SET from_ms = n.rest_from_ms, to_ms = n.rest_to_ms, trimmed = 1
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (
    gap_id BIGINT, from_ms BIGINT, trimmed INTEGER, noticed_ms BIGINT, rest_from_ms BIGINT, rest_to_ms BIGINT)
WHERE gaps.gap_id = n.gap_id AND gaps.from_ms = n.from_ms AND gaps.trimmed = n.trimmed
    AND gaps.noticed_ms = n.noticed_ms
RETURNING gaps.gap_id AS gap_id
