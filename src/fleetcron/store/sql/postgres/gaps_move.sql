-- Let the gaps of jobs follow them to another home region.
UPDATE gaps
SET region = n.region
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (job_id UUID, region TEXT)
WHERE gaps.job_id = n.job_id
