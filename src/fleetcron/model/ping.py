"""What the old scheduler says about a job that it still runs: a ping for each time it ran it. Pure.

Pings carry how long ago something was, and never an instant: the database's clock is the only one that is compared with
a tick, and the machine of a crontab may have another time.
"""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from fleetcron.errors import DefinitionError, Mistake

Event: TypeAlias = Literal["start", "end"]
LONGEST_ID: Final = 64
LONGEST_HOST: Final = 200
LONGEST_MS: Final = 366 * 86_400_000


@dataclass(frozen=True, slots=True)
class Told:
    """What somebody pings. `ping_id` ties the end of a command to its start; whoever repeats a ping says it again.

    `ago_ms`: so long ago it was; `took_ms`, of an end: how long the command ran, if that is known.
    """

    event: Event = "end"
    exit_code: int | None = None
    took_ms: int | None = None
    ago_ms: int = 0
    host: str = ""
    ping_id: str = field(default_factory=lambda: secrets.token_hex(16))

    def check(self) -> None:
        """A DefinitionError has all mistakes."""
        if mistakes := list(self._mistakes()):
            raise DefinitionError(mistakes)

    def _mistakes(self) -> Iterator[Mistake]:
        if not (0 < len(self.ping_id) <= LONGEST_ID and self.ping_id.isascii() and self.ping_id.isprintable()):
            yield Mistake("/id", f"must be 1 to {LONGEST_ID} ASCII characters")
        if len(self.host) > LONGEST_HOST or not self.host.isprintable():
            yield Mistake("/host", f"must be at most {LONGEST_HOST} characters that can be shown")
        if self.event == "start" and (self.exit_code is not None or self.took_ms is not None):
            yield Mistake("/event", "a start has no exit code and no duration", "they belong to the end")
        if self.exit_code is not None and not -(2**31) <= self.exit_code < 2**31:
            yield Mistake("/exit_code", "is not an exit code", "0 is success")
        for name, ms in (("duration", self.took_ms or 0), ("ago", self.ago_ms)):
            if not 0 <= ms <= LONGEST_MS:
                yield Mistake(f"/{name}", "must be from 0 to a year", "write it as 90s or 1h30m")


@dataclass(frozen=True, slots=True)
class Ping:
    """One time that the old scheduler ran a job, by the database's clock. `at_ms` is the start, or the end if nobody
    said when it started."""

    ping_id: str
    at_ms: int
    started_ms: int | None = None
    finished_ms: int | None = None
    exit_code: int | None = None
    host: str = ""

    @property
    def failed(self) -> bool:
        return self.exit_code not in (None, 0)
