-- Answer ticks that will not run.
INSERT INTO ledger (job_id, from_ms, to_ms, ticks, answer, reason, covered_by_ms, revision, almanac, noted_ms)
SELECT job_id, from_ms, to_ms, ticks, answer, reason, covered_by_ms, revision, almanac, noted_ms
FROM (
    SELECT value ->> 'job_id' AS job_id, value ->> 'from_ms' AS from_ms, value ->> 'to_ms' AS to_ms, value ->>
        'ticks' AS ticks, value ->> 'answer' AS answer, value ->> 'reason' AS reason, value ->> 'covered_by_ms' AS
        covered_by_ms, value ->> 'revision' AS revision, value ->> 'almanac' AS almanac, value ->> 'noted_ms' AS
        noted_ms
    FROM json_each(:rows)
) AS n
WHERE true
ON CONFLICT (job_id, from_ms) DO NOTHING
