"""Which pools are served."""

from fleetcron.store.store import Store
from fleetcron.views.able import living


async def served(store: Store) -> set[str]:
    """The pools of all workers that live."""
    return (await living(store)).pools
