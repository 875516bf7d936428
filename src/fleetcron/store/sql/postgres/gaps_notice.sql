-- Let the gaps of jobs be decided that waited for their resume; with the end of a job all that are left are cancelled.
UPDATE gaps
SET noticed_ms = n.noticed_ms, policy = n.policy, cause = coalesce(n.cause, gaps.cause)
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, policy TEXT, cause TEXT, noticed_ms BIGINT)
WHERE gaps.job_id = n.job_id AND (gaps.noticed_ms IS NULL OR n.policy = 'cancel')
