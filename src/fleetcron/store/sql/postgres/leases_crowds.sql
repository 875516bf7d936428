-- How many hold each of these keys.
SELECT claim_key, count(*) AS held FROM leases
WHERE claim_key IN (SELECT value FROM jsonb_array_elements_text(CAST(:keys AS jsonb)) AS v (value))
GROUP BY claim_key
