"""What the API of one process works with. There is no global state: two apps may live in one process."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from fleetcron.api.arrivals import Arrivals
from fleetcron.clock import Clock
from fleetcron.config import ApiConfig
from fleetcron.ids import uuid7
from fleetcron.policy.access import Limiter, Places, Uses
from fleetcron.scheduler.desk import Desk
from fleetcron.store.store import Store
from fleetcron.worker.pool import Turns

LOGINS_A_MINUTE: Final = 30  # from one address; five at once
MOST_STREAMS: Final = 200


@dataclass(slots=True)
class Context:
    """`shards` is the number of shards of the fleet; `open_to_all` says that nobody beyond this machine can ask, so
    that a first try needs no key. `closing` is set when the process is about to end: streams end then."""

    store: Store
    clock: Clock
    config: ApiConfig
    shards: int
    open_to_all: bool = False
    chance: Callable[[], float] = lambda: 0.5
    worker_ttl_ms: int = 30_000
    limiter: Limiter = field(init=False)
    logins: Limiter = field(default_factory=lambda: Limiter(LOGINS_A_MINUTE))
    uses: Uses = field(default_factory=Uses)
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    turns: Turns = field(default_factory=Turns)
    arrivals: Arrivals = field(init=False)
    streams: Places = field(init=False)  # that somebody follows now
    has_keys: bool = False  # once somebody has made one, nobody is let in without

    def __post_init__(self) -> None:
        self.limiter = Limiter(self.config.rate)
        self.arrivals = Arrivals(self.store, self.closing)
        self.streams = Places(MOST_STREAMS, self.config.streams)

    def desk(self, actor: str) -> Desk:
        return Desk(self.store, actor=actor, shards=self.shards)

    def new_id(self) -> str:
        return uuid7(self.clock.now_ms())

    async def now_ms(self) -> int:
        """The database's time: the only one that is compared with a tick."""
        return (await self.store.clock.read()).now_us // 1000


def digest(*parts: Any) -> str:
    """A fingerprint of a request."""
    found = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        found.update(len(data).to_bytes(8, "big"))
        found.update(data)
    return found.hexdigest()
