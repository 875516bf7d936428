-- How many hold each of these keys.
SELECT claim_key, count(*) AS held FROM leases
WHERE claim_key IN (SELECT value FROM json_each(:keys))
GROUP BY claim_key
