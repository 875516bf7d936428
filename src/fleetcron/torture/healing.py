"""After the faults: everybody is well again, jobs end, and everything that is due gets its answer, in bounded time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from fleetcron.clock import Clock
from fleetcron.errors import StoreUnavailable
from fleetcron.torture.acts import Acts
from fleetcron.torture.case import name_of
from fleetcron.torture.ground import Ground
from fleetcron.torture.members import Members
from fleetcron.views.numbers import numbered

STOP_S: Final = 20.0
_HEAL_S: Final = 90.0
_LOOK_EVERY_S: Final = 0.3
_OPEN: Final = "SELECT count(*) AS found FROM {at}runs WHERE finished_ms IS NULL"
_GAPS: Final = "SELECT count(*) AS found FROM {at}gaps WHERE noticed_ms IS NOT NULL"
_LATE: Final = "SELECT min(next_due_ms) AS found FROM {at}cursors"
_WORKERS: Final = "SELECT node_id FROM {at}workers"


Look: TypeAlias = Callable[[float, Sequence[str]], None]


def patience_s(hurt_s: float) -> float:
    """How long healing may take: what was missed in that time is done in as long again, and it has a little more."""
    return _HEAL_S + hurt_s


class Healing:
    def __init__(self, ground: Ground, members: Members, acts: Acts, clock: Clock, *, patience_s: float) -> None:
        self._ground = ground
        self._members = members
        self._acts = acts
        self._clock = clock
        self._patience_s = patience_s
        self._began_ms = 0
        self._look: Look = lambda _passed_s, _missing: None
        self.took_s = 0.0

    async def run(self, look: Look) -> list[str]:
        """What has not come to rest in time: nothing, if all is well. The nodes are gone then. `look` is called all the
        time with the seconds that have passed, and what is missing."""
        self._began_ms, self._look = self._clock.monotonic_ms(), look
        unsettled = await self._until(self._not_up)
        await self._insist(self._acts.resume_all)
        unsettled = unsettled or await self._until(self._not_caught_up)
        await self._insist(self._acts.pause_all)
        unsettled = unsettled or await self._until(self._not_final)
        self.took_s = self._passed_s()
        await self._members.stop(STOP_S)
        return [f"after {self.took_s:.0f} s {what}" for what in unsettled]

    def _passed_s(self) -> float:
        return (self._clock.monotonic_ms() - self._began_ms) / 1000

    async def _until(self, question: Callable[[], Awaitable[list[str]]]) -> list[str]:
        """Ask until the answer is empty, or patience is over."""
        while True:
            try:
                answer = await question()
            except StoreUnavailable as error:
                answer = [error.message]
            self._look(self._passed_s(), answer)
            if not answer or self._passed_s() > self._patience_s:
                return answer
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _insist(self, act: Callable[[], Awaitable[None]]) -> None:
        """Without it there is no verdict: if the database stays away, this ends the torture."""
        while True:
            try:
                return await act()
            except StoreUnavailable as error:
                self._look(self._passed_s(), [error.message])
                if self._passed_s() > self._patience_s:
                    raise
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _not_up(self) -> list[str]:
        away = [seat.name for seat in self._members.seats if not seat.member.is_up]
        return [f"{name} is not back ({self._last(name) or 'it has said nothing'})" for name in away]

    def _last(self, name: str) -> str:
        return next(seat.member.last_lines(1) for seat in self._members.seats if seat.name == name)

    async def _not_caught_up(self) -> list[str]:
        found = []
        [gaps] = await self._ground.ask(_GAPS)
        [late] = await self._ground.ask(_LATE)
        if gaps["found"]:
            are = (
                "1 stretch of missed ticks is"
                if gaps["found"] == 1
                else f"{gaps['found']:,} stretches of missed ticks are"
            )
            found.append(f"{are} not decided")
        if late["found"] is not None and late["found"] <= await self._now_ms():
            found.append("jobs are due, and no scheduler has looked at them")
        return found

    async def _not_final(self) -> list[str]:
        found = []
        [runs] = await self._ground.ask(_OPEN)
        if runs["found"]:
            have = "has" if runs["found"] == 1 else "have"
            found.append(f"{numbered(runs['found'], 'run')} {have} not ended")
        living = {life.name for life in self._members.living()}
        dead = {name_of(row["node_id"]) for row in await self._ground.ask(_WORKERS)} - living
        found += [f"{name} is dead, and still counts as a worker" for name in sorted(dead)]
        return found

    async def _now_ms(self) -> int:
        sample = await self._ground.sample()
        return self._clock.now_ms() + (0 if sample is None else sample.low_us // 1000)
