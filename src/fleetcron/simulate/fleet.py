"""Simulated nodes: the real rooms of a member on a simulated process, database and clock."""

import asyncio
from collections.abc import Callable
from typing import Final

from fleetcron import __version__
from fleetcron.config import Config
from fleetcron.member import Member, Tools
from fleetcron.model.shard import ANYWHERE
from fleetcron.simulate.clocks import SimulatedClock
from fleetcron.simulate.database import Database, SimulatedEngine, Way
from fleetcron.simulate.virtual import VirtualLoop
from fleetcron.simulate.work import Log, Play, SimulatedHands, Stay
from fleetcron.store.nodes import Node as NodeRow
from fleetcron.store.store import Store
from fleetcron.times import zones

_GRACE_S: Final = 1.0


class SimulatedNode:
    """One life of a node: whoever is started again is another one."""

    def __init__(
        self,
        name: str,
        loop: VirtualLoop,
        database: Database,
        *,
        way: Way,
        clock: SimulatedClock,
        config: Config,
        play: Play,
        chance: Callable[[], float],
        began: Callable[[Stay], None],
        ended: Log,
    ) -> None:
        self.name = name
        self.clock = clock
        self.process = loop.process(name)
        self.hands = SimulatedHands(
            name, loop, self.process, play, clock=clock, began=began, ended=ended, grace_s=_GRACE_S
        )
        self.store = Store(SimulatedEngine(database, way, self.process, loop, config.store.deadline_s))
        self.fault: BaseException | None = None  # of our own: the node ended because of it
        self._stop = asyncio.Event()
        self._member = self._made(config, chance)

    def _made(self, config: Config, chance: Callable[[], float]) -> Member:
        row = NodeRow(
            node_id=self.name,
            host=self.name,
            pid=1,
            roles=config.node.roles,
            region=config.node.region or ANYWHERE,
            version=__version__,
            zone_release=zones.release(),
        )
        tools = Tools(self.hands.executor, allow=self.hands.allow)
        return Member(self.store, row, config, clock=self.clock, chance=chance, tools=lambda: tools)

    @property
    def is_gone(self) -> bool:
        return self.process.is_dead

    def start(self) -> None:
        self.process.spawn(self._run())

    def ask_to_stop(self) -> None:
        """As SIGTERM: it finishes or hands back what it holds."""
        self.process.call(self._stop.set)

    def kill(self) -> None:
        """As kill -9; its handlers go with it."""
        self.process.kill()
        self.hands.kill()

    def freeze(self) -> None:
        """As SIGSTOP. Its handlers go on for as long as they are allowed to."""
        self.process.stop()

    def thaw(self) -> None:
        self.process.go_on()

    async def _run(self) -> None:
        try:
            await self._member.run(self._stop)
        except Exception as error:
            self.fault = error
        finally:
            self.process.is_dead = True
