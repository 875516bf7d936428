"""What is done to the nodes. Every fault has its end: what was frozen is woken, what was cut is healed."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random  # noqa: TID251 - whoever starts a torture gives it its chance
from typing import Final

from fleetcron.clock import Clock
from fleetcron.torture.acts import Acts
from fleetcron.torture.evidence import Fault, FaultKind
from fleetcron.torture.members import Members, Pace, Seat
from fleetcron.torture.network import Proxy

KINDS: Final[Sequence[FaultKind]] = ("kill", "stop", "network", "edit")
_WORDS: Final = {
    "reset": "its connections are reset",
    "reply": "the answer to a commit is lost",
    "cut": "its connections are refused",
    "hole": "a black hole",
    "slow": "{delay_ms} ms slower, both ways",
}
_AGAIN_S: Final = 0.1  # to look whether somebody can be hurt


class Torment:
    """`proxies` by name of a node: none where there is no network to break."""

    def __init__(
        self,
        members: Members,
        proxies: dict[str, Proxy],
        acts: Acts,
        chance: Random,
        *,
        kinds: Sequence[FaultKind],
        rate: float,
        pace: Pace,
        clock: Clock,
    ) -> None:
        self._members = members
        self._proxies = proxies
        self._acts = acts
        self._chance = chance
        self._kinds = kinds
        self._rate = rate
        self._pace = pace
        self._clock = clock
        self._bag: list[FaultKind] = []
        self._going_on: set[asyncio.Task[None]] = set()
        self.faults: list[Fault] = []
        self.ended_themselves: list[str] = []

    def counts(self) -> Counter[FaultKind]:
        return Counter(fault.kind for fault in self.faults)

    async def run(self) -> None:
        """Until it is cancelled. Then nobody is hurt any more."""
        try:
            while True:
                await asyncio.sleep(self._chance.uniform(0.5, 1.5) / self._rate)
                self.revive()
                self._begin(await self._one())
        finally:
            for task in self._going_on:
                task.cancel()
            await asyncio.gather(*self._going_on, return_exceptions=True)

    def revive(self) -> None:
        """A node that ended by itself is started again, and remembered: nobody asked it to."""
        for seat in self._members.seats:
            if not seat.is_hurt and not seat.member.is_alive:
                code = seat.member.process.returncode
                self.ended_themselves.append(f"{seat.member.name} (exit code {code}): {seat.member.farewell()}")
                self._note("kill", f"ended by itself with exit code {code}", self._clock.now_ms(), seat)
                self._members.start(seat)

    async def _one(self) -> tuple[FaultKind, Seat | None]:
        """The next fault, and a node that is well enough for it."""
        if not self._bag:  # each kind has its turn, also in a short torture
            self._bag = list(self._kinds)
            self._chance.shuffle(self._bag)
        kind = self._bag.pop()
        while kind != "edit":
            well = [seat for seat in self._members.seats if not seat.is_hurt and seat.member.is_up]
            if well:
                return kind, self._chance.choice(well)
            await asyncio.sleep(_AGAIN_S)
            self.revive()
        return kind, None

    def _begin(self, fault: tuple[FaultKind, Seat | None]) -> None:
        match fault:
            case "kill", Seat() as seat:
                work = self._kill(seat)
            case "stop", Seat() as seat:
                work = self._stop(seat)
            case "network", Seat() as seat:
                work = self._network(seat)
            case _:
                work = self._edit()
        task = asyncio.create_task(work)
        self._going_on.add(task)
        task.add_done_callback(self._going_on.discard)

    async def _kill(self, seat: Seat) -> None:
        """At a random moment; the next life begins a moment later."""
        began_ms, away_s = self._clock.now_ms(), self._chance.uniform(0, self._pace.lease_s)
        async with _hurt(seat):
            seat.member.kill()
            self._note("kill", "kill -9", began_ms, seat)
            try:
                await asyncio.sleep(away_s)
            finally:
                self._members.start(seat)

    async def _stop(self, seat: Seat) -> None:
        """Frozen until its lease is over; then it wakes and does not know."""
        began_ms, asleep_s = self._clock.now_ms(), self._pace.lease_s * self._chance.uniform(1.2, 2.2)
        async with _hurt(seat):
            seat.member.send(signal.SIGSTOP)
            try:
                await asyncio.sleep(asleep_s)
            finally:
                seat.member.send(signal.SIGCONT)
                self._note("stop", f"frozen for {_span(self._clock.now_ms() - began_ms)}", began_ms, seat)

    async def _network(self, seat: Seat) -> None:
        proxy, lease_s = self._proxies[seat.name], self._pace.lease_s
        what = self._chance.choice(("reset", "cut", "hole", "hole", "reply", "slow"))
        lasts_s, delay_s = lease_s * self._chance.uniform(0.2, 2.0), lease_s * self._chance.uniform(0.01, 0.1)
        began_ms, words = self._clock.now_ms(), _WORDS[what].format(delay_ms=round(delay_s * 1000))
        async with _hurt(seat):
            try:
                match what:
                    case "reset":
                        proxy.reset()
                    case "reply":
                        proxy.lose_reply()
                        await asyncio.sleep(lease_s / 2)  # nodes commit all the time
                    case "cut":
                        proxy.cut()
                        await asyncio.sleep(lasts_s)
                    case "hole":
                        proxy.hole()
                        await asyncio.sleep(lasts_s)
                    case _:
                        proxy.slow(delay_s)
                        await asyncio.sleep(lasts_s)
            finally:
                proxy.heal()
                lasted = f" for {_span(self._clock.now_ms() - began_ms)}" if what in ("cut", "hole", "slow") else ""
                self._note("network", f"{words}{lasted}", began_ms, seat)

    async def _edit(self) -> None:
        began_ms = self._clock.now_ms()
        done = await self._acts.any()
        if done is not None:
            self.faults.append(Fault("edit", done[0], began_ms, self._clock.now_ms(), job=done[1]))

    def _note(self, kind: FaultKind, what: str, began_ms: int, seat: Seat) -> None:
        self.faults.append(Fault(kind, what, began_ms, self._clock.now_ms(), node=seat.member.name))


@asynccontextmanager
async def _hurt(seat: Seat) -> AsyncIterator[None]:
    seat.is_hurt = True
    try:
        yield
    finally:
        seat.is_hurt = False


def _span(ms: int) -> str:
    return f"{ms / 1000:.1f} s"
