-- As work_lock, but whoever comes second does not wait: the work is being done.
SELECT 1 AS got, :name AS name
