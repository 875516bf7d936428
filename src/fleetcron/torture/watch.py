"""What is looked at all the time: how far the clocks are apart, and how much work has begun."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final

from fleetcron.errors import StoreError
from fleetcron.torture.evidence import Sample
from fleetcron.torture.ground import Ground
from fleetcron.torture.handlers import LOG

_EVERY_S: Final = 1.0


class ClockWatch:
    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.samples: list[Sample] = []

    async def run(self) -> None:
        """Until it is cancelled, or there is nothing to compare."""
        while True:
            with suppress(StoreError, TimeoutError):  # the next one will do
                sample = await self._ground.sample()
                if sample is None:
                    return
                self.samples.append(sample)
            await asyncio.sleep(_EVERY_S)


class Tally:
    """How many attempts have begun, by the log of the handlers. Each line of it is read once."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / LOG
        self._read = 0
        self.begun = 0

    def count(self) -> int:
        if self._log.exists():
            with self._log.open("rb") as log:
                log.seek(self._read)
                new = log.read()
            self._read += len(new)
            self.begun += new.count(b'"say": "start"')
        return self.begun
