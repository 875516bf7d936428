"""Where a torture takes place: a schema or a file of its own, which it makes, and takes away again."""

import json
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol

from fleetcron.torture.evidence import Sample, Tables
from fleetcron.torture.network import Reach
from fleetcron.upkeep.processes import is_gone, this_process

PREFIX: Final = "fleetcron_torture_"
NAME: Final = re.compile(rf"{PREFIX}[0-9a-f]{{12}}")


def new_name(chance: bytes) -> str:
    """Six bytes of chance make a name that nobody has."""
    return PREFIX + chance.hex()[:12]


@dataclass(frozen=True, slots=True)
class Owner:
    """Who made it, written beside it: so that nobody clears away what somebody still uses."""

    host: str
    pid: int
    process: str
    until_ms: int  # when it is over at the latest

    @classmethod
    def me(cls, until_ms: int) -> "Owner":
        return cls(socket.gethostname(), os.getpid(), this_process(os.getpid()), until_ms)

    @classmethod
    def read(cls, text: str | None) -> "Owner | None":
        try:
            return cls(**json.loads(text or ""))
        except (ValueError, TypeError):
            return None

    def text(self) -> str:
        return json.dumps(asdict(self))

    def is_running(self, now_ms: int) -> bool:
        return now_ms < self.until_ms and not is_gone(self.process)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@dataclass(frozen=True, slots=True)
class LeftOver:
    name: str
    what: str  # "the schema fleetcron_torture_…"
    owner: Owner | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What the database says before anything is done: for people, and how long a lease must be here."""

    database: str
    details: Sequence[str]
    notes: Sequence[str]
    lease_s: float
    reach: Reach | None = None  # how a proxy gets there; None: there is no network
    no_network: str | None = None  # why there is none


class Ground(Protocol):
    name: str
    what: str
    url: str  # straight, for those who are not tortured

    async def look(self, nodes: int) -> Facts:
        """Raises unless a torture with so many nodes is possible here. Changes nothing."""
        ...

    async def make(self, until_ms: int) -> None: ...

    async def read(self) -> tuple[Tables, int]:
        """All rows that the judge looks at, at one moment, and the database's time."""
        ...

    async def ask(self, question: str) -> Sequence[Mapping[str, Any]]:
        """Rows; `{at}` in the question stands before every table."""
        ...

    async def sample(self) -> Sample | None:
        """One comparison of its clock with this machine's; None if they are the same."""
        ...

    async def remove(self) -> None:
        """May be called whatever was made."""
        ...

    async def left_overs(self) -> list[LeftOver]:
        """What others have left here, and this one."""
        ...

    async def clear(self, left: LeftOver) -> None: ...

    async def close(self) -> None: ...
