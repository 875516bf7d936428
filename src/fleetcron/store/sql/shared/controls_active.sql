-- What is switched now because of an incident.
SELECT scope, name, percent, retries, backoff, until_ms FROM controls WHERE until_ms IS NULL OR until_ms > :now_ms
