-- The runs of a job that have not ended, the oldest first, and whether one is held: it runs, or rests between attempts.
SELECT r.run_id, CASE WHEN EXISTS (SELECT 1 FROM leases AS l WHERE l.run_id = r.run_id) THEN 1 ELSE 0 END AS held
FROM (
    SELECT t.run_id, t.kind FROM runs AS t WHERE t.job_id = :job_id AND t.kind <> 'manual' AND t.finished_ms IS NULL
    UNION ALL
    SELECT m.run_id, m.kind FROM runs AS m WHERE m.job_id = :job_id AND m.kind = 'manual' AND m.finished_ms IS NULL
) AS r
WHERE CAST(:kind AS TEXT) IS NULL OR r.kind = :kind
ORDER BY r.run_id
LIMIT :most
