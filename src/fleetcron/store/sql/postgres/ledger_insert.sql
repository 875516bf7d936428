-- Answer ticks that will not run.
INSERT INTO ledger (job_id, from_ms, to_ms, ticks, answer, reason, covered_by_ms, revision, almanac, noted_ms)
SELECT job_id, from_ms, to_ms, ticks, answer, reason, covered_by_ms, revision, almanac, noted_ms
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, from_ms BIGINT, to_ms BIGINT, ticks BIGINT, answer
    TEXT, reason TEXT, covered_by_ms BIGINT, revision INTEGER, almanac BIGINT, noted_ms BIGINT)
WHERE true
ON CONFLICT (job_id, from_ms) DO NOTHING
