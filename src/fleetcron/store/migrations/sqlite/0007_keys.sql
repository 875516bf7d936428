-- What a job holds under another key than its own. Whoever changes the concurrency key of a job, or what its overlap
-- allows, has runs that still hold the old one: a claim asks for them by their job. Leases under the job's own key
-- (j:...), the plain case, are found by that key and are not in here.

CREATE INDEX leases_under_other_keys ON leases (job_id) WHERE substr(coalesce(claim_key, ''), 1, 2) <> 'j:';
