"""The part of a scheduler that holds shards. One step (`beat`), one loop that sleeps and calls it (`run`).

When a holder may believe that it holds a shard: until `ttl - margin` after it SENT the last renewal that succeeded, on
its own monotonic clock. The database counts the same lease from a later moment, when it got the renewal, so the holder
steps down before anybody else can take over, however late a reply comes. A renewal with an unknown outcome did not
happen. A process that was asleep past that moment finds that it holds nothing.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

from fleetcron.clock import Clock
from fleetcron.config import CoordinationConfig
from fleetcron.coordination.skew import Offset, Verdict, measured, with_good_clocks
from fleetcron.coordination.spread import Moves, deserted, spread
from fleetcron.errors import RefusedError, StoreError
from fleetcron.model.shard import ANYWHERE, Held, ShardKey
from fleetcron.steps import step
from fleetcron.store.engine import Engine
from fleetcron.store.hints import LOST
from fleetcron.store.nodes import Node, Nodes
from fleetcron.store.shards import FleetView, Shards
from fleetcron.store.written import Ok, Refused, Unknown, Written
from fleetcron.times.words import ranges

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Churn:
    """What happened to the shards of this holder since it started. The event log has the same for the fleet."""

    gained: int = 0
    lost: int = 0  # somebody else took it
    given_back: int = 0
    stepped_down: int = 0  # not renewed in time
    unknown: int = 0  # replies that were lost
    failures: int = 0  # beats that the store did not answer


class Holder:
    def __init__(self, engine: Engine, node: Node, config: CoordinationConfig, *, shards: int, clock: Clock) -> None:
        self.node = node
        self.churn = Churn()
        self.offset: Offset | None = None
        self.deserted: Sequence[str] = ()  # regions with jobs and without a scheduler
        self.trouble: str | None = None  # why the store did not answer, or not to the end, the last time it was asked
        self.changed = asyncio.Event()  # set when the shards that are held have changed; whoever waits for it clears it
        self._engine, self._clock, self._config = engine, clock, config
        self._nodes, self._shards = Nodes(engine), Shards(engine)
        self._number = shards
        self._ttl_ms = round(config.lease_ttl_s * 1000)
        self._node_ttl_ms = round(config.node_ttl_s * 1000)
        self._heartbeat_ms = round(config.heartbeat_s * 1000)
        self._retry_ms = max(20, self._heartbeat_ms // 5)
        self._joined = False
        self._until_ms: dict[Held, int] = {}  # by our monotonic clock
        self._stepped_down: set[Held] = set()
        self._free_since_ms: dict[ShardKey, int] = {}
        self._beat_at_ms = 0  # when the next beat is due, by our monotonic clock
        self._look_at_ms = 0  # when the earliest lease of somebody else runs out
        self._verdict = Verdict.FINE
        self._lost_reply: str | None = None
        self._wake = asyncio.Event()  # the loop has something to do
        self._resigned = False  # we take no more shards
        self._owes_resignation = False  # and the store does not know yet

    def held(self) -> list[Held]:
        """The shards that are ours at this moment. Ask again before every plan; a list that was kept may be stale."""
        now_ms = self._clock.monotonic_ms()
        return sorted(one for one, until_ms in self._until_ms.items() if now_ms < until_ms)

    async def beat(self) -> list[Held]:
        """Renew, say that we live, measure the clock, give back and take.

        Raises StoreError if the store does not answer, RefusedError if this node may not be part of the fleet.
        """
        self._beat_at_ms = self._clock.monotonic_ms() + self._heartbeat_ms
        self._notice_step_down()
        if self._owes_resignation:
            await self._tell_resignation()
        await self._renew()
        await self._say_alive()
        await self.settle()
        return self.held()

    async def settle(self) -> list[Held]:
        """Look who holds what, and do what is ours to do about it."""
        if self._owes_resignation:
            await self._tell_resignation()
        view = await self._shards.view()
        step("shards.viewed")
        if any(not seen.alive for seen in view.nodes):
            await self._nodes.give_up_silent()
        if not any(seen.node.node_id == self.node.node_id for seen in view.nodes):
            self._beat_at_ms = self._clock.monotonic_ms()  # given up as silent: we have to join again first
            return self.held()
        if not self._until_ms.keys() <= {lease.held for lease in view.leases if lease.held.owner == self.node.node_id}:
            await self._renew()  # somebody else has what we believe is ours: find out what we have lost
        moves = self._moves(view)
        await self._give_back(view, moves.give_back)
        # what the database says is ours and we do not know of: the reply to a take was lost
        known = self._known()
        await self._take([*moves.take, *(key for key in moves.keep if key not in known)])
        self._look_at_ms = self._clock.monotonic_ms() + self._earliest_end_ms(view, moves)
        return self.held()

    def resign(self) -> None:
        """Hold nothing from now on, and live on as a node. Stop planning before you call it.

        The loop gives the shards back at once, and goes on trying if the store does not answer.
        """
        self.node = replace(self.node, roles=tuple(role for role in self.node.roles if role != "scheduler"))
        self._resigned = self._owes_resignation = True
        self._wake.set()

    async def release(self) -> None:
        """Stop: give everything back at once and tell those who wait. Stop planning before you call it."""
        self._drop(list(self._until_ms))
        if self._joined:
            step("shards.leaving")
            answer = await self._nodes.leave(self.node.node_id)
            step("shards.left")
            self._joined = False
            if isinstance(answer, Ok):
                self.churn.given_back += answer.value
            log.info("%s left", self.node.node_id)

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`: beat in time, look when somebody else's lease ends or a hint comes. Leaves at the end."""
        async with self._engine.hints() as hints:
            ears = [asyncio.create_task(self._listen(hints)), asyncio.create_task(_pass_on(stop, self._wake))]
            try:
                while not stop.is_set():
                    self._wake.clear()
                    await self._turn()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self.rest_ms() / 1000):
                            await self._wake.wait()
            finally:
                for ear in ears:
                    ear.cancel()
                await asyncio.gather(*ears, return_exceptions=True)
                with suppress(StoreError):  # then the leases just run out
                    await self.release()

    def rest_ms(self) -> int:
        """How long there is nothing to do, unless a hint comes."""
        return max(1, min(self._beat_at_ms, self._look_at_ms) - self._clock.monotonic_ms())

    async def _turn(self) -> None:
        self._lost_reply = None
        beats = self._clock.monotonic_ms() >= self._beat_at_ms
        try:
            if beats:
                await self.beat()
            else:
                await self.settle()
        except StoreError as error:
            self.churn.failures += 1
            now_ms = self._clock.monotonic_ms()
            self._beat_at_ms = self._look_at_ms = now_ms + self._retry_ms
            if self.trouble != str(error):
                log.warning("%s cannot reach the store: %s", self.node.node_id, error)
            self.trouble = str(error)
        else:
            # Only a beat is sure to write. A look that was answered is no sign that a store can be written again, and a
            # store in trouble loses hints, so it is looked at often.
            if beats or self._lost_reply:
                self.trouble = self._lost_reply

    async def _listen(self, hints: AsyncIterator[str]) -> None:
        async for topic in hints:
            if topic in ("shards", LOST):
                self._wake.set()

    async def _tell_resignation(self) -> None:
        self._drop(list(self._until_ms))
        if self._joined:  # else the store is told when we join
            step("shards.resigning")
            given_back = self._answer(await self._nodes.resign(self.node.node_id, self.node.roles))
            step("shards.resigned")
            if given_back is None:
                return  # and say it again soon
            self.churn.given_back += given_back
            log.info("%s plans no more and gave back %d shards", self.node.node_id, given_back)
        self._owes_resignation = False

    async def _renew(self) -> None:
        held = sorted(self._until_ms)
        if not held:
            return
        sent_ms = self._clock.monotonic_ms()
        step("shards.renewing")
        kept = self._answer(await self._shards.renew(self.node.node_id, held, self._ttl_ms))
        step("shards.renewed")
        if kept is None:
            return
        self._hold(kept, sent_ms)
        lost = [one for one in held if one not in kept]
        if lost:
            self._drop(lost)
            self.churn.lost += len(lost)
            log.warning("%s lost %s", self.node.node_id, _named(lost))

    async def _say_alive(self) -> None:
        if self._joined:
            offset_ms = self.offset.ms if self.offset else 0
            sent = self._clock.now_ms(), self._clock.monotonic_ms()
            answer = await self._nodes.heartbeat(self.node.node_id, self._node_ttl_ms, offset_ms)
            step("node.heartbeat")
            if not isinstance(answer, Refused):
                self._compare_clocks(*sent, answer)
                return
            log.warning("%s; it joins again", answer.reason)
        await self._join()

    async def _join(self) -> None:
        sent = self._clock.now_ms(), self._clock.monotonic_ms()
        step("node.joining")
        answer = await self._nodes.announce(self.node, self._node_ttl_ms, shards=self._number)
        step("node.joined")
        if isinstance(answer, Refused):
            self._drop(list(self._until_ms))
            raise RefusedError(answer.reason)
        self._joined = True  # also if the reply was lost: the next heartbeat finds out
        self._compare_clocks(*sent, answer)

    def _compare_clocks(self, sent_ms: int, sent_monotonic_ms: int, answer: Written[int]) -> None:
        database_ms = self._answer(answer)
        if database_ms is None:
            return
        self.offset = measured(sent_ms, self._clock.monotonic_ms() - sent_monotonic_ms, database_ms)
        verdict = self.offset.verdict(self._config.skew_warn_ms, self._config.skew_refuse_ms)
        if verdict is self._verdict:
            return
        self._verdict = verdict
        match verdict:
            case Verdict.FINE:
                log.info("%s: the clock is right again", self.node.node_id)
            case Verdict.WARN:
                log.warning("%s: the clock is %s; set it right (NTP)", self.node.node_id, self.offset)
            case Verdict.REFUSE:
                log.error(
                    "%s: the clock is %s; shards go to nodes with better clocks until it is right",
                    self.node.node_id,
                    self.offset,
                )

    def _moves(self, view: FleetView) -> Moves:
        me = self.node.node_id
        # Whoever let a lease run out is not counted, or what it held would wait until it counts as gone as a node.
        silent = {lease.held.owner for lease in view.leases if lease.expires_ms <= view.now_ms} - {me}
        able = [
            one
            for one in view.nodes
            if one.node.schedules
            and (not self._resigned if one.node.node_id == me else one.alive and one.node.node_id not in silent)
        ]
        nodes = {one.node.node_id: one.node.region for one in with_good_clocks(able, self._config.skew_refuse_ms)}
        before, self.deserted = self.deserted, deserted(nodes, view.job_regions)
        if self.deserted and self.deserted != before and not self._resigned:
            log.warning("jobs wait for a scheduler: %s", "; ".join(map(_waiting, self.deserted)))
        owners = {
            lease.held.key: lease.held.owner
            for lease in view.leases
            if lease.expires_ms > view.now_ms or lease.held.owner == me
        }
        regions = {ANYWHERE, self.node.region, *nodes.values(), *view.job_regions}
        return spread(me, nodes, regions, self._number, owners, self._overdue(regions, owners))

    def _overdue(self, regions: set[str], owners: dict[ShardKey, str]) -> frozenset[ShardKey]:
        """Shards that were free for longer than anybody who lives needs to notice it."""
        now_ms = self._clock.monotonic_ms()
        free = [ShardKey(region, shard) for region in sorted(regions) for shard in range(self._number)]
        self._free_since_ms = {key: self._free_since_ms.get(key, now_ms) for key in free if key not in owners}
        patience_ms = self._heartbeat_ms + self._heartbeat_ms // 2
        return frozenset(
            key
            for key, since_ms in self._free_since_ms.items()
            if now_ms - since_ms >= patience_ms and key.region in (ANYWHERE, self.node.region)
        )

    async def _give_back(self, view: FleetView, keys: Sequence[ShardKey]) -> None:
        wanted = set(keys)
        held = [
            lease.held for lease in view.leases if lease.held.owner == self.node.node_id and lease.held.key in wanted
        ]
        if not held:
            return
        self._drop(held)  # first: nobody may plan with them while the release is on its way
        step("shards.releasing")
        released = self._answer(await self._shards.release(self.node.node_id, held))
        step("shards.released")
        if released:
            self.churn.given_back += len(released)
            log.info("%s gave back %s", self.node.node_id, _named(released))

    async def _take(self, keys: Sequence[ShardKey]) -> None:
        for region, group in groupby(sorted(keys), key=lambda key: key.region):
            sent_ms = self._clock.monotonic_ms()
            step("shards.taking")
            wanted = [key.shard for key in group]
            taken = self._answer(await self._shards.take(region, wanted, self.node.node_id, self._ttl_ms))
            step("shards.taken")
            if taken:
                self._hold(taken, sent_ms)
                self.churn.gained += len(taken)
                log.info("%s took %s", self.node.node_id, _named(taken))

    def _earliest_end_ms(self, view: FleetView, moves: Moves) -> int:
        """How long until there may be something to take: when a lease of somebody else runs out."""
        ends = [
            lease.expires_ms - view.now_ms
            for lease in view.leases
            if lease.held.owner != self.node.node_id and lease.held.region in (ANYWHERE, self.node.region)
        ]
        known = self._known()
        if any(key not in known for key in moves.take):  # somebody was faster, or has its term in his hands
            ends.append(self._retry_ms)
        if self._owes_resignation:
            ends.append(self._retry_ms)
        # a lease that has run out and that others are to take is looked at again by and by, not all the time
        return min((end if end > 0 else self._retry_ms for end in ends), default=self._heartbeat_ms) + 1

    def _answer(self, answer: Written[T]) -> T | None:
        match answer:
            case Ok(value):
                return value
            case Refused(reason):
                raise RefusedError(reason)
            case Unknown(why):
                self.churn.unknown += 1
                self._lost_reply = why
                return None

    def _known(self) -> set[ShardKey]:
        return {one.key for one in self._until_ms}

    def _hold(self, held: Sequence[Held], sent_ms: int) -> None:
        until_ms = sent_ms + self._ttl_ms - round(self._config.margin_s * 1000)
        before = self.held()
        keys = {one.key for one in held}
        self._drop([one for one in self._until_ms if one.key in keys and one not in held])
        self._until_ms |= dict.fromkeys(held, until_ms)
        self._stepped_down.difference_update(held)
        if self.held() != before:
            self.changed.set()

    def _drop(self, held: Sequence[Held]) -> None:
        for one in held:
            if self._until_ms.pop(one, None) is not None:
                self.changed.set()
        self._stepped_down.difference_update(held)

    def _notice_step_down(self) -> None:
        now_ms = self._clock.monotonic_ms()
        late = {one for one, until_ms in self._until_ms.items() if until_ms <= now_ms} - self._stepped_down
        if late:
            self._stepped_down |= late
            self.churn.stepped_down += len(late)
            self.changed.set()
            log.warning("%s could not renew in time: %s", self.node.node_id, _named(late))


def _waiting(region: str) -> str:
    """Which jobs, and what to start for them."""
    if region == ANYWHERE:
        return "those without a region (start fleetcron scheduler, or serve)"
    return f"those of the region {region} (start fleetcron scheduler --region {region}, or serve)"


def _named(held: Iterable[Held]) -> str:
    """`*/0 to 15 (term 3)`: those of one region and term together, for most nodes hold many."""
    alike = groupby(sorted(held, key=lambda one: (one.region, one.term, one.shard)), lambda one: (one.region, one.term))
    return ", ".join(
        f"{region}/{ranges([one.shard for one in group])} (term {term})" for (region, term), group in alike
    )


async def _pass_on(one: asyncio.Event, other: asyncio.Event) -> None:
    await one.wait()
    other.set()
