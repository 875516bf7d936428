-- The queues of a pool: lanes and priorities that something was ever queued in.
SELECT lane, priority, rank FROM shares WHERE pool = :pool AND tenant = '' ORDER BY lane, priority
