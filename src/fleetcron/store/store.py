"""The store: an engine and its nouns."""

from fleetcron.clock import Clock
from fleetcron.config import StoreConfig
from fleetcron.store.almanac import AlmanacTables
from fleetcron.store.attempts import AttemptHistory
from fleetcron.store.backfills import Backfills
from fleetcron.store.claims import Claims
from fleetcron.store.controls import ControlRecords
from fleetcron.store.cursors import Cursors
from fleetcron.store.dbclock import DatabaseClock
from fleetcron.store.definitions import Definitions
from fleetcron.store.ends import Attempts
from fleetcron.store.events import Events
from fleetcron.store.failing import FailingHistory
from fleetcron.store.figures import RunFigures
from fleetcron.store.following import Following
from fleetcron.store.gaps import Gaps
from fleetcron.store.history import History
from fleetcron.store.idempotency import Idempotency
from fleetcron.store.jobs import Jobs
from fleetcron.store.keys import Keys
from fleetcron.store.limits import LimitRecords
from fleetcron.store.migrations import Altering
from fleetcron.store.nodes import Nodes
from fleetcron.store.opening import open_engine
from fleetcron.store.output import AttemptOutput
from fleetcron.store.pings import Pings
from fleetcron.store.queue import Queue
from fleetcron.store.sessions import Sessions
from fleetcron.store.shards import Shards
from fleetcron.store.situations import Situations
from fleetcron.store.steering import Steering
from fleetcron.store.sweeping import Sweeping
from fleetcron.store.workers import Workers


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
        self.clock = DatabaseClock(engine)
        self.queue = Queue(engine)
        self.workers = Workers(engine)
        self.claims = Claims(engine)
        self.definitions = Definitions(engine)
        self.attempts = Attempts(engine)
        self.output = AttemptOutput(engine)
        self.past_attempts = AttemptHistory(engine)
        self.situations = Situations(engine)
        self.sweeping = Sweeping(engine)
        self.following = Following(engine)
        self.failing = FailingHistory(engine)
        self.limits = LimitRecords(engine)
        self.steering = Steering(engine)
        self.backfills = Backfills(engine)
        self.controls = ControlRecords(engine)
        self.keys = Keys(engine)
        self.sessions = Sessions(engine)
        self.idempotency = Idempotency(engine)
        self.figures = RunFigures(engine)
        self.pings = Pings(engine)

    @classmethod
    async def open(cls, config: StoreConfig, clock: Clock) -> "Store":
        """Connect. The tables may be missing or old: `migrations.migrate` or `require_current` comes next."""
        engine = await open_engine(
            config.url, clock=clock, deadline_s=config.deadline_s, connections=config.connections
        )
        return cls(engine)

    async def close(self) -> None:
        await self.engine.close()
