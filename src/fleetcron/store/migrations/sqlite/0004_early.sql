-- Runs that are in the queue a moment before they are due, in the order in which they will be. Without it a claim read
-- everything that was due already to find that nothing else was there.

CREATE INDEX queue_early ON queue (pool, lane, priority, due_ms, rank, run_id) WHERE gate IS NULL;
