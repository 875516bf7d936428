"""What attempts print, and how far they are: collected for a moment, then stored together."""

import asyncio
import logging
from typing import Final

from fleetcron.errors import StoreError, StoreUnavailable
from fleetcron.executors.reports import LogChunk, Progress
from fleetcron.store.store import Store
from fleetcron.store.written import Unknown

log = logging.getLogger(__name__)

_EVERY_S: Final = 0.25
_MOST: Final = 256  # pieces in one transaction


class Output:
    def __init__(self, store: Store, node_id: str) -> None:
        self._store = store
        self._node_id = node_id
        self._chunks: list[LogChunk] = []
        self._progress: dict[int, Progress] = {}
        self._some = asyncio.Event()
        self._writing = asyncio.Lock()

    def put(self, report: LogChunk | Progress) -> None:
        if isinstance(report, LogChunk):
            self._chunks.append(report)
        else:
            self._progress[report.run_id] = report
        self._some.set()

    async def run(self) -> None:
        """For ever: soon after something came, not at once."""
        while True:
            await self._some.wait()
            await asyncio.sleep(_EVERY_S)
            try:
                await self.flush()
            except StoreError as error:
                log.warning("what attempts print cannot be stored yet: %s", error)

    async def flush(self) -> None:
        """Everything that came until now, and nothing that comes meanwhile: there may always be more, and whoever waits
        for this has an end to write. A StoreError leaves it for the next time: a piece that is there already is not
        stored twice."""
        async with self._writing:
            left, progress = len(self._chunks), list(self._progress.values())
            while left or progress:
                chunks = self._chunks[: min(left, _MOST)]
                written = await self._store.output.append(self._node_id, chunks, progress)
                if isinstance(written, Unknown):
                    raise StoreUnavailable(f"it is not known whether what attempts print was stored: {written.why}")
                self._chunks = self._chunks[len(chunks) :]
                for each in progress:
                    if self._progress.get(each.run_id) is each:
                        del self._progress[each.run_id]
                left, progress = left - len(chunks), []
            if not self._chunks and not self._progress:
                self._some.clear()
