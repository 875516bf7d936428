-- How often each kind of event was noted since an instant.
SELECT kind, sum(count) AS count FROM events WHERE at_ms >= :since_ms GROUP BY kind ORDER BY kind
