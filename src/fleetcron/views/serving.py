"""Which pools are served."""

from fleetcron.store.store import Store


async def served(store: Store) -> set[str]:
    """The pools of all workers that live."""
    seen = await store.workers.list()
    return {pool for worker in seen.workers if worker.expires_ms > seen.now_ms for pool in worker.pools}
