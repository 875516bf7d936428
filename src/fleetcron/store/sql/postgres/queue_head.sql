-- The first runs of one queue that wait for nothing but a slot.
SELECT * FROM queue
WHERE pool = :pool AND lane = :lane AND priority = :priority AND gate IS NULL
    AND due_ms > :after_ms AND due_ms <= :until_ms
    AND handler NOT IN (SELECT value FROM jsonb_array_elements_text(CAST(:lacks AS jsonb)) AS v (value))
ORDER BY rank, run_id
LIMIT :most
