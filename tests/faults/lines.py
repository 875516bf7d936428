"""The line between a node and its database, and what can happen to it.

A line is a TCP proxy (`proxied`): it can swallow everything, cut everybody off, be slow, or lose the answer to a
commit. Or it is a cable (`cabled`): the node lives in a network namespace, and the kernel drops what is sent. Then
nobody resets anything: what was under way when the cable was pulled arrives when it is back, seconds late.

Who may not make namespaces gets a proxy in its place, and the reason in `instead`: whoever uses it must say so.
"""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from random import Random
from typing import Final

from tests.faults.nursery import Nursery, nursery
from tests.faults.work_fleet import Siege
from tests.services.guard import Guard
from tests.services.proxy import Fault, Proxy

_NUMBERS: Final = count(1)


class Line(Proxy):
    """`hole` and `cut` are faults of any proxy."""

    def __init__(self, url: str, chance: Random, host: str = "127.0.0.1") -> None:
        super().__init__(url)
        self._chance = chance
        self._host = host
        self._slow_s = 0.0
        self.cradle: Nursery | None = None  # where nodes live that have this line, if not here
        self.instead: str | None = None  # why it is a proxy although a cable was wanted
        self.faults: dict[str, Callable[[], None]] = {
            "black hole": self.hole,
            "reset": self.cut,
            "slow": self.crawl,
            "lost reply": self.lose_a_reply,
        }

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, self._host, 0)

    def crawl(self) -> None:
        """Each packet takes a while; together they take longer than most calls may."""
        self._slow_s = 0.4

    def lose_a_reply(self) -> None:
        self.at(b"COMMIT", self._chance.choice([Fault.LOSE_REPLY, Fault.HOLE_REPLY, Fault.LOSE_REQUEST]))

    def heal(self) -> None:
        self._slow_s = 0.0
        self._fault = None
        super().heal()

    async def passable(self) -> None:
        if self._slow_s:
            await asyncio.sleep(self._chance.random() * self._slow_s)
        await super().passable()


class Cable(Line):
    """A line out of a network namespace, through a pair of interfaces, to a relay here."""

    def __init__(self, url: str, chance: Random, space: "Namespace") -> None:
        super().__init__(url, chance, space.here)
        self._space = space
        self.faults = {"partition": self.part}

    def part(self) -> None:
        """In both directions, as a switch without power; or only one of them gets through."""
        self._chance.choice([self._space.pull, self._space.lose_requests, self._space.lose_replies])()

    def heal(self) -> None:
        self._space.heal()


class Stand(Line):
    """What is there instead of a cable."""

    def __init__(self, url: str, chance: Random, reason: str) -> None:
        super().__init__(url, chance)
        self.instead = reason
        self.faults = {"partition": self.hole}


class NotAllowed(Exception):
    """No network namespaces here; the text says why."""


class Namespace:
    def __init__(self, guard: Guard) -> None:
        number = next(_NUMBERS)
        self.name = f"fleetcron-{os.getpid()}-{number}"
        self._plug = f"fc{os.getpid() % 1_000_000}n{number}"  # an interface has a short name
        place = (os.getpid() * 16 + number) % 32_000  # 198.18.0.0/15 is for tests of networks: nobody lives there
        self.here, self.there = (
            f"198.{18 + place // 16_000}.{place % 16_000 // 64}.{place % 64 * 4 + n}" for n in (1, 2)
        )
        guard.on_end("ip", "netns", "delete", self.name)

    def open(self) -> None:
        ip("netns", "add", self.name)
        ip("link", "add", self._plug, "type", "veth", "peer", "name", "far", "netns", self.name)
        ip("address", "add", f"{self.here}/30", "dev", self._plug)
        ip("link", "set", self._plug, "up")
        for words in (("address", "add", f"{self.there}/30", "dev", "far"), ("link", "set", "far", "up")):
            ip("-n", self.name, *words)
        ip("-n", self.name, "link", "set", "lo", "up")

    def close(self) -> None:
        ip("netns", "delete", self.name)  # the interfaces go with it

    def pull(self) -> None:
        ip("link", "set", self._plug, "down")

    def lose_requests(self) -> None:
        ip("-n", self.name, "route", "add", "blackhole", f"{self.here}/32")

    def lose_replies(self) -> None:
        ip("route", "add", "blackhole", f"{self.there}/32")

    def heal(self) -> None:
        ip("link", "set", self._plug, "up")
        for words in (("-n", self.name, "route", "delete", "blackhole", f"{self.here}/32"),
                      ("route", "delete", "blackhole", f"{self.there}/32")):  # fmt: skip
            subprocess.run(["ip", *words], check=False, capture_output=True)  # one of them, or none, is there


def ip(*words: str) -> None:
    try:
        done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    except FileNotFoundError:
        raise NotAllowed("there is no `ip` on this machine (Debian: iproute2)") from None
    if done.returncode:
        raise NotAllowed(f"`ip {' '.join(words)}`: {done.stderr.strip()}")


@asynccontextmanager
async def proxied(siege: Siege, chance: Random) -> AsyncIterator[Line]:
    async with _open(Line(siege.url, chance)) as line:
        yield line


@asynccontextmanager
async def cabled(siege: Siege, chance: Random, guard: Guard) -> AsyncIterator[Line]:
    space = Namespace(guard)
    try:
        space.open()
    except NotAllowed as reason:
        async with _open(Stand(siege.url, chance, str(reason))) as stand:
            yield stand
        return
    try:
        within = ("ip", "netns", "exec", space.name)
        made = nursery(guard, siege.folder, "tests.faults.work_node", waits=False, within=within)
        with made as cradle:
            async with _open(Cable(siege.url, chance, space)) as cable:
                cable.cradle = cradle
                yield cable
    finally:
        space.close()


@asynccontextmanager
async def _open(line: Line) -> AsyncIterator[Line]:
    await line.start()
    try:
        yield line
    finally:
        await line.stop()
