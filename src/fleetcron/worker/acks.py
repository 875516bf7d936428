"""Writes how attempts ended: whatever has ended while the last batch was written is the next batch.

A batch whose reply was lost is written again as it is; what was written then is no longer held, and changes nothing.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence, Sized
from typing import Final, TypeAlias

from fleetcron.errors import StoreError, StoreUnavailable
from fleetcron.model.errand import Errand
from fleetcron.model.outcome import Failed, Fault, Snoozed, Succeeded
from fleetcron.model.states import RunState
from fleetcron.model.transition import Transition
from fleetcron.store.ends import Attempts, Ended, Ends
from fleetcron.store.written import Ok, Refused, Unknown
from fleetcron.worker.settling import settling

log = logging.getLogger(__name__)
log_of_attempts = logging.getLogger("fleetcron.attempts")  # said of each, however many there are

_BATCH: Final = 500
_LEVELS: Final = {RunState.DEAD: logging.ERROR, RunState.CANCELLED: logging.INFO}
_LONGEST_PAUSE_S: Final = 1.0
_BELIEVED: Final = 3  # so often an end is refused before it is given up

Heard: TypeAlias = Callable[[int, float, float], None]


class Acks:
    """`written` is called after each batch; `heard` gets the database's time with every reply; `still` is over when it
    keeps nobody from starting."""

    def __init__(
        self,
        attempts: Attempts,
        node_id: str,
        *,
        chance: Callable[[], float],
        before: Callable[[], Awaitable[None]],
        heard: Heard,
        written: Callable[[Ends], None],
        still: Callable[[], Awaitable[None]],
    ) -> None:
        self._attempts = attempts
        self._node_id = node_id
        self._chance = chance
        self._before = before
        self._heard = heard
        self._written = written
        self._still = still
        self._pending: list[tuple[Ended, Errand]] = []
        self._writing: Sequence[tuple[Ended, Errand]] = ()
        self._some = asyncio.Event()
        self._none = asyncio.Event()
        self._none.set()
        self._life = 0  # of the lease: what ended in an earlier one is not ours to write
        self.late = 0  # ends that were refused because somebody else held the run
        self.trouble: str | None = None  # why what has ended cannot be written

    def put(self, ended: Ended, errand: Errand) -> None:
        self._pending.append((ended, errand))
        self._some.set()
        self._none.clear()

    def keys(self) -> set[tuple[int, int]]:
        """Run and attempt of what has ended and is not written yet."""
        return {(each.run_id, each.attempt) for each, _ in (*self._pending, *self._writing)}

    async def empty(self) -> None:
        """When everything that has ended is written."""
        await self._none.wait()

    def drop(self) -> int:
        """Nothing of this can be written any more: others hold those runs."""
        count = len(self._pending)
        self._life += 1
        self._pending.clear()
        self._some.clear()
        self._none.set()
        return count

    async def run(self) -> None:
        """For ever."""
        while True:
            await self._some.wait()
            await self._still()
            batch, self._pending = self._pending[:_BATCH], self._pending[_BATCH:]
            if batch:
                self._writing = batch
                await self._write(batch)
                self._writing, self.trouble = (), None
            if not self._pending:
                self._some.clear()
                self._none.set()

    async def _write(self, batch: Sequence[tuple[Ended, Errand]]) -> None:
        loop = asyncio.get_running_loop()
        ended = [each for each, _ in batch]
        decide = settling({each.run_id: errand for each, errand in batch}, self._chance)
        pause_s, unsure, refusals, life = 0.05, False, 0, self._life
        while life == self._life:  # until it is written, or dropped because the lease is gone
            sent_s = loop.time()
            try:
                await self._before()  # what an attempt printed is there when its end is
                match await self._attempts.finish(self._node_id, ended, decide, again=unsure):
                    case Ok(done):
                        self._heard(done.now_ms, sent_s, loop.time())
                        self._tell(done, {each.run_id: each for each in ended}, unsure=unsure)
                        self._written(done)
                        return
                    case Unknown(why):
                        unsure = True
                        if self.trouble != why:
                            log.warning("it is not known whether the end of %s was written: %s", _many(ended), why)
                        self.trouble = why
                    case Refused(reason):
                        log.error("the end of %s was refused: %s", _many(ended), reason)
                        return
            except StoreUnavailable as error:
                if self.trouble != str(error):
                    log.warning("the end of %s cannot be written yet: %s", _many(ended), error)
                self.trouble = str(error)
            except StoreError as error:  # it may not get better: one of them is at fault, and the others must not wait
                if len(batch) > 1:
                    for each in batch:
                        await self._write([each])
                    return
                refusals += 1
                if refusals == _BELIEVED:
                    await self._give_up(*batch[0], error)
                    return
            await asyncio.sleep(pause_s)
            pause_s = min(_LONGEST_PAUSE_S, pause_s * 2)

    async def _give_up(self, ended: Ended, errand: Errand, error: StoreError) -> None:
        log.error("the end of run %d attempt %d cannot be written: %s", ended.run_id, ended.attempt, error)
        fault = Fault("unwritable", f"how it ended could not be stored: {error}"[:500])
        plain = Ended(ended.run_id, ended.attempt, Failed(fault), ended.started_ms, ended.finished_ms)
        if ended != plain:  # the second time it is given up; what holds it is found by whoever looks after leases
            await self._write([(plain, errand)])

    def _tell(self, done: Ends, ended: Mapping[int, Ended], *, unsure: bool) -> None:
        if done.late and not unsure:
            self.late += len(done.late)
            log.warning("too late: %s no longer ours, nothing was changed", _many(done.late, " was", " were"))
        is_debug = log_of_attempts.isEnabledFor(logging.DEBUG)
        for run_id, become in done.transitions.items():
            if isinstance(ended[run_id].outcome, Succeeded | Snoozed):
                if not is_debug:
                    continue
                took_ms = ended[run_id].finished_ms - ended[run_id].started_ms
                said = (self._node_id, run_id, ended[run_id].attempt, become.state, took_ms)
                log_of_attempts.debug("%s: run %d attempt %d: %s in %d ms", *said)
                continue
            level = _LEVELS.get(become.state, logging.WARNING)
            why = _reason(become)
            log_of_attempts.log(level, "run %d attempt %d: %s%s", run_id, ended[run_id].attempt, become.state, why)


def _reason(become: Transition) -> str:
    """In a line, and without what the state says already."""
    if become.error is None:
        return ""
    code = "" if become.error.code == become.state else f": {become.error.code}"
    return f"{code}: {become.error.text.partition(chr(10))[0]}"


def _many(attempts: Sized, one: str = "", more: str = "") -> str:
    return f"1 attempt{one}" if len(attempts) == 1 else f"{len(attempts)} attempts{more}"
