-- Lists of jobs by pool and by who keeps them, a page at a time. Without these a page of a pool that few jobs use read
-- every job, and so did a prune.

CREATE INDEX jobs_by_pool ON jobs (pool, tenant, name) WHERE deleted_ms IS NULL;
CREATE INDEX jobs_by_manager ON jobs (managed_by, tenant, name) WHERE deleted_ms IS NULL AND managed_by IS NOT NULL;
