-- How the latest runs of a job ended, since it was last changed.
SELECT r.state FROM runs AS r
WHERE r.job_id = :job_id AND r.kind <> 'manual' AND r.finished_ms >= :since_ms AND r.state IN ('succeeded', 'dead')
ORDER BY r.scheduled_for_ms DESC
LIMIT :most
