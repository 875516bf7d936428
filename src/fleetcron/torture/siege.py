"""The order of events: look, make a place, start nodes, hurt them, let them heal, judge, and take everything away."""

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random  # noqa: TID251 - whoever starts a torture gives it its chance
from typing import Final, NamedTuple, Protocol

from fleetcron.clock import Clock
from fleetcron.config.settings import StoreConfig
from fleetcron.errors import StoreError
from fleetcron.model.definition import Definition
from fleetcron.store.migrations import migrate
from fleetcron.store.store import Store
from fleetcron.torture.acts import Acts
from fleetcron.torture.evidence import Evidence, FaultKind, keep, read_lines
from fleetcron.torture.ground import Facts, Ground
from fleetcron.torture.healing import STOP_S, Healing, patience_s
from fleetcron.torture.jobs import jobs
from fleetcron.torture.judge import judge
from fleetcron.torture.members import SHARDS, Members, Pace, waited
from fleetcron.torture.network import Proxy, Reach
from fleetcron.torture.torment import KINDS, Torment
from fleetcron.torture.verdict import Verdict
from fleetcron.torture.watch import ClockWatch, Tally

START_S: Final = 60.0  # for all nodes to begin their work
_SPARE_S: Final = 300.0
_AHEAD_MS: Final = 3000
_TELL_EVERY_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class Wish:
    """Of `kinds` that are not possible it is said; if somebody `insists`, that is an error."""

    nodes: int = 3
    for_s: float = 60.0
    rate: float = 0.5  # faults a second
    seed: int = 0
    kinds: Sequence[FaultKind] = KINDS
    insists: bool = False
    keep: bool = False


class Plan(NamedTuple):
    """What will be done, said before it is done."""

    wish: Wish
    facts: Facts
    kinds: Sequence[FaultKind]
    jobs: int
    what: str
    left_out: str | None  # why there are no faults of the network


class Progress(NamedTuple):
    phase: str  # starting, hurting, healing
    passed_s: float
    of_s: float
    faults: Counter[FaultKind]
    begun: int
    missing: str | None = None  # what is waited for


class Audience(Protocol):
    def hears(self, plan: Plan) -> None: ...

    def sees(self, progress: Progress) -> None: ...

    def ends(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Result:
    plan: Plan
    verdict: Verdict
    evidence: Evidence
    faults: Mapping[FaultKind, int]
    ended_themselves: Sequence[str]
    healed_s: float


class Siege:
    """`run` once. Afterwards `left` says what could not be taken away, and `folder` where the evidence is, if it is
    kept."""

    def __init__(
        self, ground: Ground, wish: Wish, audience: Audience, *, clock: Clock, environment: Mapping[str, str]
    ) -> None:
        self._ground = ground
        self._wish = wish
        self._audience = audience
        self._clock = clock
        self._environment = environment
        self._chance = Random(wish.seed)
        self._patience_s = patience_s(wish.for_s)
        self._proxies: list[Proxy] = []
        self._members: Members | None = None
        self._store: Store | None = None
        self._made = False
        self.folder: Path | None = None
        self.left: str | None = None

    async def run(self) -> Result:
        keeps = self._wish.keep
        try:
            facts = await self._ground.look(self._wish.nodes)
            kinds, left_out = await self._kinds(facts)
            definitions = jobs(await self._middle_ms())
            plan = Plan(self._wish, facts, kinds, len(definitions), self._ground.what, left_out)
            self._audience.hears(plan)
            result = await self._torture(plan, definitions)
            keeps = keeps or not result.verdict.holds
            return result
        finally:
            await self._clean_up(keeps_folder=keeps)

    # -- before

    async def _kinds(self, facts: Facts) -> tuple[list[FaultKind], str | None]:
        """Which faults are possible here, and why one is not."""
        kinds = list(self._wish.kinds)
        if "network" not in kinds:
            return kinds, None
        why = facts.no_network if facts.reach is None else await self._trouble_through_proxies(facts.reach)
        if why is None:
            return kinds, None
        if self._wish.insists:
            raise StoreError(f"the network cannot be broken here: {why}", hint="leave network out of --faults")
        await self._stop_proxies()
        kinds.remove("network")
        return kinds, why

    async def _trouble_through_proxies(self, reach: Reach) -> str | None:
        """A certificate or a file of passwords may insist on the server's own name."""
        for _ in range(self._wish.nodes):
            proxy = Proxy(reach)
            await proxy.start()
            self._proxies.append(proxy)
        config = StoreConfig(url=self._proxies[0].url(self._ground.url), connections=1)
        try:
            await (await Store.open(config, self._clock)).close()
        except StoreError as error:
            return f"nobody gets through a proxy ({error.message})"
        return None

    async def _middle_ms(self) -> int:
        """By the database's clock: for the job that runs once."""
        sample = await self._ground.sample()
        ahead_us = 0 if sample is None else sample.high_us
        return (self._clock.now_us() + ahead_us) // 1000 + round(self._wish.for_s * 500) + _AHEAD_MS

    # -- meanwhile

    async def _torture(self, plan: Plan, definitions: Sequence[Definition]) -> Result:
        store, folder = await self._place()
        acts = Acts(store, definitions, self._chance, shards=SHARDS)
        await acts.create()
        pace, tally = Pace(plan.facts.lease_s), Tally(folder)
        self._members = members = Members(folder, pace, self._environment)
        for number in range(self._wish.nodes):
            members.add(self._proxies[number].url(self._ground.url) if self._proxies else self._ground.url)
        proxies = {seat.name: proxy for seat, proxy in zip(members.seats, self._proxies, strict=False)}
        torment = Torment(
            members, proxies, acts, self._chance, kinds=plan.kinds, rate=self._wish.rate, pace=pace, clock=self._clock
        )
        watch = ClockWatch(self._ground)
        watching = asyncio.create_task(watch.run())
        try:
            await self._until_work_begins(members, tally)
            await self._hurt(torment, tally)
            healing = Healing(self._ground, members, acts, self._clock, patience_s=self._patience_s)
            unsettled = await healing.run(partial(self._look, torment, tally))
        finally:
            watching.cancel()
            await asyncio.wait([watching])
        tables, now_ms = await self._ground.read()
        found = Evidence(
            tables=tables,
            now_ms=now_ms,
            lines=read_lines(folder),
            faults=torment.faults,
            acts=acts.confirmed,
            clock=watch.samples,
            anew={life.name: life.began_anew() for life in members.lives()},
            unsettled=unsettled,
        )
        keep(found, folder)
        return Result(plan, judge(found), found, torment.counts(), torment.ended_themselves, healing.took_s)

    async def _place(self) -> tuple[Store, Path]:
        length_s = START_S + self._wish.for_s + self._patience_s + STOP_S + _SPARE_S
        self._made = True  # also if nobody knows
        await self._ground.make(self._clock.now_ms() + round(length_s * 1000))
        self.folder = folder_of(self._ground.name)
        self.folder.mkdir(mode=0o700)
        (self.folder / "locks").mkdir()
        self._store = await Store.open(StoreConfig(url=self._ground.url, connections=2), self._clock)
        await migrate(self._store.engine)
        await self._store.shards.fix(SHARDS)
        return self._store, self.folder

    async def _until_work_begins(self, members: Members, tally: Tally) -> None:
        """All nodes are up, and as many attempts have begun."""

        def works() -> bool:
            return tally.count() >= len(members.seats) and all(seat.member.is_up for seat in members.seats)

        def is_decided() -> bool:
            passed_s = (self._clock.monotonic_ms() - began_ms) / 1000
            self._audience.sees(Progress("starting", passed_s, START_S, Counter(), tally.begun))
            return works() or any(not seat.member.is_alive for seat in members.seats)

        began_ms = self._clock.monotonic_ms()
        await waited(is_decided, START_S)
        if not works():
            idle = next((seat.member for seat in members.seats if not seat.member.is_up), members.seats[0].member)
            raise StoreError(f"{idle.name} did not begin to work", hint=f"it said last: {idle.last_lines()}")

    async def _hurt(self, torment: Torment, tally: Tally) -> None:
        began_ms, for_s = self._clock.monotonic_ms(), self._wish.for_s
        hurting = asyncio.create_task(torment.run())
        try:
            while not hurting.done() and (passed_s := (self._clock.monotonic_ms() - began_ms) / 1000) < for_s:
                self._audience.sees(Progress("hurting", passed_s, for_s, torment.counts(), tally.count()))
                await asyncio.sleep(min(_TELL_EVERY_S, for_s - passed_s))
        finally:
            hurting.cancel()
            await asyncio.wait([hurting])
        if not hurting.cancelled():
            hurting.result()  # it never returns: this raises what went wrong

    def _look(self, torment: Torment, tally: Tally, passed_s: float, missing: Sequence[str]) -> None:
        torment.revive()
        counts = torment.counts(), tally.count()
        self._audience.sees(Progress("healing", passed_s, self._patience_s, *counts, missing[0] if missing else None))

    # -- afterwards

    async def _clean_up(self, *, keeps_folder: bool) -> None:
        """Whatever happened. What cannot be taken away is told, and does not hide what happened."""
        self._audience.ends()
        if self._members is not None:
            await self._members.kill()
        await self._stop_proxies()
        try:
            if self._store is not None:
                await self._store.close()
            if self._made and not self._wish.keep:
                await self._ground.remove()
        except (StoreError, OSError, TimeoutError) as error:
            self.left = f"{self._ground.what} could not be removed: {error}"
        finally:
            await self._ground.close()
        if self.folder is not None and not keeps_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    async def _stop_proxies(self) -> None:
        for proxy in self._proxies:
            await proxy.stop()
        self._proxies.clear()


def folder_of(name: str) -> Path:
    """Where the nodes and the handlers write, and where the evidence is kept."""
    return Path(tempfile.gettempdir(), name)
