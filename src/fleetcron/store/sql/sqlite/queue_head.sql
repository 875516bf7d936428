-- The first runs of one queue that wait for nothing but a slot.
SELECT * FROM queue
WHERE pool = :pool AND lane = :lane AND priority = :priority AND gate IS NULL
    AND due_ms > :after_ms AND due_ms <= :until_ms
    AND handler NOT IN (SELECT value FROM json_each(:lacks))
ORDER BY rank, run_id
LIMIT :most
