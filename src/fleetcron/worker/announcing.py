"""A worker says what it will never run as soon as it joins, not when the first run waits for it.

Whoever hands a job over, applies one or looks at it can then be told that nobody who lives could run it. The store
forgets what a worker lacks whenever that is looked at again; what its settings refuse is said again each time.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from fleetcron.errors import StoreError
from fleetcron.store.engine import Engine
from fleetcron.store.workers import Workers
from fleetcron.store.written import Ok, Written


class AnnouncingWorkers(Workers):
    """The workers of the store, for a process in which one of them lives; of all others it says nothing."""

    def __init__(self, engine: Engine, node_id: str, refused: Callable[[], Mapping[str, str]]) -> None:
        super().__init__(engine)
        self._own = node_id
        self._refused = refused
        self._lacking: Mapping[str, str] = {}  # what it was asked for and has not
        self._is_said = True

    async def join(self, node_id: str, process: str, pools: Mapping[str, int], ttl_ms: int) -> Written[None]:
        joined = await super().join(node_id, process, pools, ttl_ms)
        if node_id == self._own and isinstance(joined, Ok):
            self._lacking = {}
            await self._say()
        return joined

    async def held(self, node_id: str) -> list[tuple[int, int]]:
        """Asked for after each renewal: when the lease is safe, there is time to say what could not be said before."""
        if node_id == self._own and not self._is_said:
            await self._say()
        return await super().held(node_id)

    async def lack(self, node_id: str, handlers: Mapping[str, str]) -> Written[None]:
        if node_id != self._own:
            return await super().lack(node_id, handlers)
        self._lacking = dict(handlers)
        return await super().lack(node_id, {**self._refused(), **handlers})

    async def look_again(self, node_id: str, pools: Sequence[str]) -> Written[None]:
        if node_id == self._own:
            self._lacking = {}
        looked = await super().look_again(node_id, pools)
        if node_id == self._own:
            await self._say()
        return looked

    async def _say(self) -> None:
        """If that is not possible now, after the next renewal: no worker ends because it could not be said."""
        self._is_said = False
        with suppress(StoreError):
            written = await super().lack(self._own, {**self._refused(), **self._lacking})
            self._is_said = isinstance(written, Ok)
