-- Note what left the normal path, many at once.
INSERT INTO events (at_ms, kind, count, job_id, node_id, actor, detail)
SELECT db_now_ms(), kind, count, job_id, node_id, actor, detail
FROM (
    SELECT value ->> 'kind' AS kind, value ->> 'count' AS count, value ->> 'job_id' AS job_id, value ->> 'node_id'
        AS node_id, value ->> 'actor' AS actor, value ->> 'detail' AS detail
    FROM json_each(:rows)
) AS n
