"""Python functions in handler hosts: child processes that are started when they are needed, and kept.

Nothing of a user's code is imported into this process.

When a host crashes with several functions in it, nobody knows which one it was. All of them are suspects then, and each
runs alone, in a host for one, until it has come back once. So a function that crashes does it to itself the next time,
and the innocent lose one attempt and not all of them. A host for one imports only that one, and goes after it.

A function that did not stop, so that its host has to be killed, is a suspect too: its next attempt takes nobody along.
If the host did not even answer, who it was is less sure. One that holds the interpreter lets the timeouts of others run
out before its own. So whoever was in two such hosts, one after the other, is a suspect as well.

Hosts may know different things: one was started before new code came, one could not import what another could. What
one of them has is there, and each is given only what it has. A host that lacks a function and whose files have changed
since it imported them is replaced: only a new process can see the new code.

A module may end the process that imports it. It is looked for again now and then, as it may be better by now, but only
in a host on trial, which has nothing to lose. When it has survived the import, the others may have the module too.
"""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Final

from fleetcron.clock import Clock
from fleetcron.config import ExecutorConfig
from fleetcron.executors.allowed import is_allowed, module_of, named, not_allowed
from fleetcron.executors.assignment import Assignment, Key
from fleetcron.executors.flights import Flight
from fleetcron.executors.handler_host import Found, HandlerHost, HostSettings, function_of
from fleetcron.executors.programs import Programs
from fleetcron.executors.reports import Declined, Done, Outbox, Report, Tell
from fleetcron.executors.verdicts import stopped
from fleetcron.executors.waiting import Waiting, wanted
from fleetcron.model.outcome import Cancelled, Fault, Lost, Outcome
from fleetcron.model.target import PythonTarget, Target

_LONGEST_PAUSE_S: Final = 30.0
_SINGLES: Final = 32  # hosts for one suspect at most: 20 MB each, and what its function imports
_STARTING: Final = 4  # of them at the same time: a crash in a large pool is not to take the processor from the others
_ACQUITTALS: Final = 2  # a module may be harmless alone and not beside others: how often it is believed to be
_ENDED: Final = "the handler host ended while it was imported"
_SOON: Final = 2  # failed starts whose pauses whoever looks for a function sits out: a second, then two


class HandlerHosts:
    """`slots`: how many functions run at the same time, in all hosts together. Each takes its share; another host is
    started when all that are there have something to do."""

    def __init__(
        self,
        programs: Programs,
        config: ExecutorConfig,
        slots: int,
        environment: Mapping[str, str],
        clock: Clock,
        tell: Tell,
        store_url: str | None = None,
    ) -> None:
        self._programs = programs
        self._config = config
        self._most = min(config.hosts, slots)  # hosts, but those for suspects
        self._settings = HostSettings(
            allowed=config.handlers,
            slots=-(-slots // self._most),
            # what configures this node is not for its handlers: the store's password may be in it
            environment={name: value for name, value in environment.items() if not name.startswith("FLEETCRON_")},
            grace_ms=round(config.grace_s * 1000),
            patience_ms=round(config.patience_s * 1000),
            silence_ms=round(config.silence_s * 1000),
            store_url=store_url,  # over the pipe: what a handler starts does not get it
        )
        self._clock = clock
        self._tell = tell
        self._outbox = Outbox(tell)
        self._loop = asyncio.get_running_loop()
        self._hosts: list[HandlerHost] = []  # the retired ones too, until they are gone
        self._singles: dict[HandlerHost, str] = {}  # those of them that are for one suspect, and for which
        self._trials: dict[HandlerHost, str] = {}  # and those in which nothing runs, for a module that may end it
        self._waiting = Waiting()
        self._suspects: set[str] = set()
        self._mute: set[str] = set()  # was in a host that did not answer and was killed, and has not come back since
        self._found: Found = {}
        self._fatal: set[str] = set()  # their import has ended a host: not to be tried on the others
        self._doubted: set[str] = set()  # it may have been their import, or what ran in the host just then
        self._acquitted: Counter[str] = Counter()  # modules: how often on trial, since they were elsewhere
        self._failed_starts = 0
        self._why_no_host = ""
        self._pause: asyncio.TimerHandle | None = None
        self._rested = asyncio.Event()  # there is no pause
        self._rested.set()
        self._is_closing = False
        self._empty = asyncio.Event()

    async def learn(self, targets: Sequence[Target]) -> None:
        names = {target.function for target in targets if isinstance(target, PythonTarget)}
        unknown = sorted(name for name in names if not self._is_known(name))
        allowed = [name for name in unknown if is_allowed(name, self._config.handlers)]
        if not allowed or self._is_closing:
            return
        await asyncio.gather(*map(self._look_for, allowed))

    def knows(self, target: Target) -> bool:
        return isinstance(target, PythonTarget) and self._is_known(target.function)

    def why_not(self, target: Target) -> str | None:
        if not isinstance(target, PythonTarget):
            return "it is not a Python function"
        if is_allowed(target.function, self._config.handlers) is None:
            return not_allowed(target.function)
        nobody = self._why_no_host if self._failed_starts else f"{target.function} was not looked for yet"
        return self._found.get(target.function, nobody)

    def start(self, assignments: Sequence[Assignment]) -> None:
        self._waiting.queue.extend(assignments)
        self._feed()

    def cancel(self, run_id: int, attempt: int, reason: str, grace_s: float | None = None) -> None:
        key = (run_id, attempt)
        for host in self._hosts:
            if key in host.flights.by_key:
                host.ask(key, "cancel", reason, None if grace_s is None else round(grace_s * 1000))
                return
        waiting = self._waiting.withdraw(key)
        if waiting is not None:
            self._not_started(waiting, Cancelled(reason))

    def running(self) -> set[Key]:
        flying = {key for host in self._hosts for key in host.flights.by_key}
        return flying | self._waiting.keys() | self._outbox.ending()

    async def close(self, grace_s: float) -> None:
        self._is_closing = True
        if self._pause is not None:
            self._pause.cancel()
        self._rested.set()
        reason = "the worker was stopped"
        self._give_up(stopped("closing", 0, reason))
        for host in list(self._hosts):
            host.hurry()
            for key in list(host.flights.by_key):
                host.ask(key, "closing", reason, round(grace_s * 1000))
            host.retire(reason)
            if not host.is_ready:
                host.kill()
        if self._hosts:
            await self._empty.wait()
        self._outbox.flush()

    def _is_known(self, name: str) -> bool:
        return name in self._found and self._found[name] is None

    # -- what the hosts know

    async def _look_for(self, name: str) -> None:
        asked: set[HandlerHost] = set()
        # one after the other: an import that ends its process is not to end them all
        while not self._is_known(name):
            is_trial = self._is_doubtful(name)
            host = self._on_trial(name) if is_trial else self._to_ask(asked)
            if host is None:
                if not self._is_worth_a_pause(name):
                    return
                await self._rested.wait()
                continue
            await asyncio.shield(host.search(name))
            if name in host.died_of & self._fatal or (is_trial and name not in host.found):
                self._found[name] = _ENDED
                return
            if is_trial and not self._is_acquitted(name, host):
                self._found[name] = host.found[name]
                return
            if not is_trial and not host.has_ended:  # or it ended of something else, as far as anybody knows
                asked.add(host)
                if name in host.found and name not in host.hangs:
                    del self._acquitted[module_of(name)]

    def _is_doubtful(self, name: str) -> bool:
        return module_of(name) in map(module_of, self._fatal | self._doubted)

    def _on_trial(self, name: str) -> HandlerHost | None:
        if self._acquitted[module_of(name)] >= _ACQUITTALS:
            return None
        for host, module in self._trials.items():
            if module == module_of(name) and not host.is_retired:
                return host
        return self._new_host(trial=name) if self._may_start else None

    def _is_acquitted(self, name: str, trial: HandlerHost) -> bool:
        """An import that hangs may end its host yet. The host is kept: when it is over, the next who asks sees it."""
        if name in trial.hangs:
            return False
        module = module_of(name)
        self._acquitted[module] += self._is_doubtful(name)  # others may have waited for the same
        for names in (self._fatal, self._doubted):
            names -= {one for one in names if module_of(one) == module}
        if not trial.seeks:
            trial.retire("the import was harmless")
        return True

    def _is_worth_a_pause(self, name: str) -> bool:
        """Whoever is not known when it was looked for is not looked for again for a while, also not the innocent."""
        is_soon = self._pause is not None and self._failed_starts <= _SOON
        return is_soon and not self._is_closing and name not in self._fatal and not self._fresh()

    def _fresh(self, *, single: bool = False) -> list[HandlerHost]:
        """Those that may get something new, also when they are ready. The newest is the last."""
        fresh = (host for host in self._hosts if not host.is_retired and host not in self._trials)
        return [host for host in fresh if (host in self._singles) is single]

    def _to_ask(self, asked: Set[HandlerHost]) -> HandlerHost | None:
        """Whoever has least to lose; a new one if there is none. None if all were asked."""
        fresh = self._fresh()
        if fresh:
            others = [host for host in fresh if host not in asked]
            return min(others, key=lambda host: len(host.flights.by_key), default=None)
        return self._new_host() if self._may_start and len(asked) <= self._most else None

    def _spread(self) -> None:
        """What one host has found, the others look for too. Nobody waits for it."""
        known = [name for name in self._found if self._is_known(name) and name not in self._fatal]
        for host in self._fresh():
            for name in known:
                if name not in host.sought:
                    host.search(name)
        self._reckon()

    def _reckon(self) -> None:
        """After hosts have looked, or are no longer there: what is known, and who is not to be given what."""
        fresh = self._fresh()
        for name in {name for host in fresh for name in host.found}:
            said = [host.found[name] for host in fresh if name in host.found]
            if None in said:
                self._found[name] = None
            elif len(said) == len(fresh) or not self._is_known(name):
                self._found[name] = said[-1]
        there = {name for host in fresh for name in host.found if host.has(name)}
        for host in fresh:  # what nobody has is declined by whoever gets it
            soon = host.seeks - host.hangs  # who hangs may never come: whoever waits for it is to be told so
            host.misses = frozenset(name for name in there | soon if not host.has(name))
        for host in self._fresh(single=True):
            host.misses = frozenset(host.seeks - host.hangs)
            # Some can be imported only once, as one that opens a port: waiting for a host of its own, it never runs.
            self._suspects -= {name for name in there & host.found.keys() if not host.has(name)}

    # -- work for the hosts

    def _feed(self) -> None:
        suspected = self._waiting.suspected
        if self._suspects or suspected:
            self._waiting.sort_out(self._suspects)
        self._feed_hosts()
        if suspected or self._singles:
            self._feed_singles()

    def _feed_hosts(self) -> None:
        queue = self._waiting.queue
        if not queue:
            return
        fresh = self._fresh()
        ready = [host for host in fresh if host.is_ready]
        share = -(-len(queue) // max(1, len(ready)))
        while queue and ready:
            host = max(ready, key=lambda one: one.room)
            if host.room <= 0:
                break
            some = self._waiting.take(min(host.room, share), host.misses)
            if some:
                host.feed(some)
            else:
                ready.remove(host)
        if self._may_start and len(fresh) < self._most:
            coming = sum(host.room for host in fresh if not host.is_ready)
            if len(queue) > coming or all(host.flights.by_key for host in fresh):
                self._new_host()

    def _feed_singles(self) -> None:
        for host, name in list(self._singles.items()):
            if host.is_ready and host.room > 0 and not host.misses:
                one = self._waiting.take_suspect(name)
                if one is None:
                    host.retire(f"nobody waits to run {name} alone any more")
                else:
                    host.feed([one])
        coming = Counter(name for host, name in self._singles.items() if host.room > 0)
        for one in list(self._waiting.suspected):
            name = wanted(one)
            if coming[name] > 0:
                coming[name] -= 1
            elif sum(bool(host.flights.by_key) for host in self._singles) >= _SINGLES:
                # They may be busy for hours, and here nothing has a timeout, but a slot and a lease.
                self._waiting.withdraw(one.key)
                why = f"was in a host that ended and has to run alone; all {_SINGLES} hosts for that are busy"
                self._outbox.put(Declined(*one.key, f"{name} {why}"))
            elif self._may_start and len(self._singles) < _SINGLES and self._starting < _STARTING:
                self._new_host(alone=name)

    @property
    def _may_start(self) -> bool:
        return self._pause is None and not self._is_closing

    @property
    def _starting(self) -> int:
        return sum(not host.is_ready and not host.is_retired for host in self._singles)

    def _new_host(self, *, alone: str | None = None, trial: str | None = None) -> HandlerHost | None:
        settings = self._settings
        names = {*named(self._config.handlers), *filter(self._is_known, self._found)}
        if self._failed_starts:  # what was imported may be what ended the last one
            names.clear()
        if alone is not None:
            names, settings = {alone}, dataclasses.replace(settings, slots=1)
        names = names - self._fatal if trial is None else {trial}
        try:
            host = HandlerHost(self._programs, settings, sorted(names), self._clock, self)
        except OSError as error:
            self._could_not_start(f"no room for another process: {error.strerror}")
            return None
        self._hosts.append(host)
        if alone is not None:
            self._singles[host] = alone
        if trial is not None:
            self._trials[host] = module_of(trial)
        return host

    # -- what becomes of a host

    def host_told(self, host: HandlerHost, reports: Sequence[Report], ended: Sequence[Flight]) -> None:
        self._tell(reports)
        if self._mute:
            self._mute.difference_update(map(function_of, ended))
        if host in self._singles:
            self._suspects.difference_update(map(function_of, ended))
            if any(isinstance(report, Declined) for report in reports):
                host.retire("it lacks a function: the next one may find it")
        self._feed()

    def host_is_ready(self) -> None:
        self._failed_starts = 0
        self._reckon()
        self._spread()
        self._feed()

    def host_has_looked(self) -> None:
        self._reckon()
        self._spread()
        self._feed()

    def host_is_retired(self) -> None:
        self._reckon()
        self._feed()

    def host_does_not_stop(self, function: str) -> None:
        self._suspects.add(function)

    def host_ended(self, host: HandlerHost, reason: str, suspects: Set[str], doubted: Set[str]) -> None:
        self._hosts.remove(host)
        is_single, is_trial = self._singles.pop(host, None) is not None, self._trials.pop(host, None) is not None
        self._suspects |= suspects | (doubted & self._mute)
        self._mute |= doubted
        # Where something ran, that may have ended it: an import is believed to have done it when it happens again.
        again = {name for name in host.died_of if name in self._doubted or self._acquitted[module_of(name)]}
        self._fatal |= again if host.was_at_work else host.died_of
        self._doubted |= host.died_of
        self._found |= dict.fromkeys(host.died_of & self._fatal, _ENDED)  # unless another host has it
        self._reckon()
        is_explained = is_trial or (is_single and bool(host.died_of))  # others can be started as before
        if not host.is_ready and not self._is_closing and not is_explained:
            self._could_not_start(reason)
        if not self._hosts and self._is_closing:
            self._empty.set()
        self._feed()

    def _could_not_start(self, reason: str) -> None:
        """Trying again at once would only burn the machine. What was imported before may be what ended it."""
        self._found.clear()
        self._reckon()  # but those that are there have what they have
        self._why_no_host = f"the handler host could not be started: {reason}"
        self._failed_starts += 1
        pause_s = min(_LONGEST_PAUSE_S, 0.5 * 2**self._failed_starts)
        if self._pause is not None:
            self._pause.cancel()
        self._pause = self._loop.call_later(pause_s, self._try_again)
        self._rested.clear()
        if not any(host.is_ready for host in self._fresh()):
            self._give_up(Lost(Fault("host_start_failed", self._why_no_host)))

    def _try_again(self) -> None:
        self._pause = None
        self._rested.set()
        self._feed()

    def _give_up(self, outcome: Outcome) -> None:
        for one in self._waiting.withdraw_all():
            self._not_started(one, outcome)

    def _not_started(self, assignment: Assignment, outcome: Outcome) -> None:
        now_ms = self._clock.monotonic_ms()
        self._outbox.put(Done(assignment.run_id, assignment.attempt, outcome, now_ms, now_ms))
