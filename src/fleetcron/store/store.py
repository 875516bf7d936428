"""The store: an engine and its nouns."""

from fleetcron.clock import Clock
from fleetcron.config import StoreConfig
from fleetcron.store.almanac import AlmanacTables
from fleetcron.store.cursors import Cursors
from fleetcron.store.events import Events
from fleetcron.store.gaps import Gaps
from fleetcron.store.history import History
from fleetcron.store.jobs import Jobs
from fleetcron.store.migrations import Altering
from fleetcron.store.nodes import Nodes
from fleetcron.store.opening import open_engine
from fleetcron.store.shards import Shards


class Store:
    def __init__(self, engine: Altering) -> None:
        self.engine = engine
        self.jobs = Jobs(engine)
        self.cursors = Cursors(engine)
        self.gaps = Gaps(engine)
        self.almanac = AlmanacTables(engine)
        self.history = History(engine)
        self.events = Events(engine)
        self.nodes = Nodes(engine)
        self.shards = Shards(engine)

    @classmethod
    async def open(cls, config: StoreConfig, clock: Clock) -> "Store":
        """Connect. The tables may be missing or old: `migrations.migrate` or `require_current` comes next."""
        engine = await open_engine(
            config.url, clock=clock, deadline_s=config.deadline_s, connections=config.connections
        )
        return cls(engine)

    async def close(self) -> None:
        await self.engine.close()
