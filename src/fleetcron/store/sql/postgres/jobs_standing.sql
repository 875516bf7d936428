-- Jobs by name, with where they stand.
SELECT j.*, c.shard, c.timing_id, c.cursor_ms, c.ticks_used, c.next_due_ms, t.body AS timing
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (tenant TEXT, name TEXT)
JOIN jobs AS j ON j.tenant = n.tenant AND j.name = n.name AND j.deleted_ms IS NULL
LEFT JOIN cursors AS c ON c.job_id = j.job_id
LEFT JOIN timings AS t ON t.timing_id = c.timing_id
ORDER BY j.tenant, j.name
