-- Let the gaps of jobs be decided that waited for their resume or end.
UPDATE gaps
SET noticed_ms = n.noticed_ms, policy = n.policy
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, policy TEXT, noticed_ms BIGINT)
WHERE gaps.job_id = n.job_id AND gaps.noticed_ms IS NULL
