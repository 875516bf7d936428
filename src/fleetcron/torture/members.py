"""Nodes as child processes: the product itself, as `fleetcron serve` starts it, with short leases.

They die with this process, however it dies (`child.py`). Each life of a node has a name of its own: node-2.3 is the
third life of node-2.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fleetcron.config.sources import PREFIX, URL_VARIABLES
from fleetcron.executors.process_tree import keepers_of
from fleetcron.torture.handlers import FOLDER, NODE
from fleetcron.torture.jobs import HANDLERS, POOL

SHARDS: Final = 4
CONNECTIONS: Final = 4  # of one node to PostgreSQL, beside the one that listens
SLOTS: Final = 8
_POLL_S: Final = 0.02
_ENDING_S: Final = 5.0
_UP: Final = " serves "
_ANEW: Final = "the worker has begun anew"


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the nodes are: everything follows from the length of a lease."""

    lease_s: float = 2.0

    def settings(self) -> dict[str, str]:
        lease_s = self.lease_s
        return {
            "STORE__DEADLINE": f"{lease_s * 0.35:.3f}s",
            "STORE__CONNECTIONS": str(CONNECTIONS),
            "SCHEDULER__LOOKAHEAD": "2s",
            "SCHEDULER__IDLE_POLL": "500ms",
            "SCHEDULER__SHARDS": str(SHARDS),
            "COORDINATION__LEASE_TTL": f"{lease_s:.3f}s",
            "COORDINATION__HEARTBEAT": f"{lease_s / 4:.3f}s",
            "COORDINATION__MARGIN": f"{lease_s * 0.15:.3f}s",
            "COORDINATION__NODE_TTL": f"{lease_s:.3f}s",
            "WORKER__POOLS": f"{POOL}={SLOTS}",
            "WORKER__LEASE_TTL": f"{lease_s:.3f}s",
            "WORKER__RENEW": f"{lease_s / 4:.3f}s",
            "WORKER__POLL": "500ms",
            "WORKER__DRAIN": "5s",
            "EXECUTOR__HANDLERS": HANDLERS,
            "EXECUTOR__GRACE": "1s",
            "EXECUTOR__ENVIRONMENT": ",".join((FOLDER, NODE, "PYTHONPATH")),
        }


@dataclass(slots=True)
class Member:
    """One life of a node."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path
    is_stopped: bool = False

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    @property
    def is_up(self) -> bool:
        return self.is_alive and _UP in self.log.read_text("utf-8", "replace")

    def began_anew(self) -> int:
        return self.log.read_text("utf-8", "replace").count(_ANEW)

    def last_lines(self, most: int = 3) -> str:
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-most:])

    def farewell(self) -> str:
        """Why it ended, by its own word."""
        lines = self.log.read_text("utf-8", "replace").splitlines()
        errors = [line for line in lines if line.startswith("error: ")]
        return errors[-1].removeprefix("error: ") if errors else (lines or ["it has said nothing"])[-1]

    def send(self, number: signal.Signals) -> None:
        if self.is_alive:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)

    def kill(self) -> int:
        """It is gone when this returns; how it ended, as `subprocess` says it."""
        self.send(signal.SIGKILL)
        return self.process.wait()


@dataclass(slots=True)
class Seat:
    """A node, whichever life it is in. `url` is the way to the database that it takes."""

    name: str
    url: str
    lives: list[Member] = field(default_factory=list)
    is_hurt: bool = False

    @property
    def member(self) -> Member:
        return self.lives[-1]


class Members:
    """`environment` is this process's own: what it says about fleetcron is left out, so that nothing of the user's
    settings reaches a node of the torture."""

    def __init__(self, folder: Path, pace: Pace, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._pace = pace
        self._environment = {
            key: value
            for key, value in environment.items()
            if not key.startswith(PREFIX) and key.removesuffix("_FILE") not in URL_VARIABLES
        }
        self.seats: list[Seat] = []

    def add(self, url: str) -> Seat:
        seat = Seat(f"node-{len(self.seats) + 1}", url)
        self.seats.append(seat)
        self.start(seat)
        return seat

    def start(self, seat: Seat) -> Member:
        """The next life of a node."""
        name = f"{seat.name}.{len(seat.lives) + 1}"
        log = self._folder / f"{name}.log"
        environment = {f"{PREFIX}{key}": value for key, value in self._pace.settings().items()}
        environment |= {f"{PREFIX}STORE__URL": seat.url, f"{PREFIX}NODE__NAME": name}  # not where `ps` shows it
        environment |= {FOLDER: str(self._folder), NODE: name}
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "fleetcron.torture.child", str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env={**self._environment, **environment},
                start_new_session=True,  # Ctrl-C in the terminal is for us
            )
        seat.lives.append(Member(name, process, log))
        return seat.member

    def lives(self) -> list[Member]:
        return [life for seat in self.seats for life in seat.lives]

    def living(self) -> list[Member]:
        return [life for life in self.lives() if life.is_alive]

    async def stop(self, patience_s: float) -> None:
        """In an orderly way; whoever has not gone then is killed."""
        for life in self.living():
            life.send(signal.SIGCONT)
            life.send(signal.SIGTERM)
        await waited(lambda: not self.living(), patience_s)
        await self.kill()

    async def kill(self) -> None:
        """All of them, and wait until what they had started is gone too: their keepers see to that."""
        for life in self.lives():
            life.kill()
        await waited(lambda: not any(keepers_of(life.process.pid) for life in self.lives()), _ENDING_S)


async def waited(question: Callable[[], bool], patience_s: float) -> bool:
    """Whether it was answered with yes in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            while not question():
                await asyncio.sleep(_POLL_S)
            return True
    return question()
