-- The lines of a job's ledger that touch a stretch, with the timing they were counted with. Lines never overlap.
SELECT l.entry_id, l.from_ms, l.to_ms, l.ticks, l.answer, l.reason, l.covered_by_ms, l.revision, l.almanac, l.noted_ms,
    r.timing_id
FROM ledger AS l
JOIN job_revisions AS r ON r.job_id = l.job_id AND r.revision = l.revision
WHERE l.job_id = :job_id AND l.from_ms <= :to_ms AND l.to_ms >= :from_ms AND l.from_ms >= coalesce(
    (SELECT max(b.from_ms) FROM ledger AS b WHERE b.job_id = :job_id AND b.from_ms <= :from_ms), :from_ms)
ORDER BY l.from_ms
