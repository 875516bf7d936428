"""Where a dry run looks: at the store as it is, of which nothing is changed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from fleetcron.applying.rehearsal import RehearsalStore
from fleetcron.cli.connection import opened, sqlite_path
from fleetcron.config import Config, StoreConfig
from fleetcron.store.migrations import require_current, status
from fleetcron.store.store import Store


@asynccontextmanager
async def rehearsing(config: Config) -> AsyncIterator[Store]:
    """The store as it is, but nothing is kept. Where there are no jobs yet, an empty one in memory stands for it."""
    path = sqlite_path(config.store.url)
    if path is None or path.exists():
        async with opened(config, "any") as store:
            if (await status(store.engine)).applied:
                await require_current(store.engine)
                if await store.shards.number() is not None:  # nobody has made a job as long as nobody has fixed it
                    yield RehearsalStore(store)
                    return
    async with opened(replace(config, store=StoreConfig(url=":memory:")), "made") as store:
        yield store
