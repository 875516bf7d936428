"""Commands: a program with its arguments, under a supervisor that ends everything the program has started.

The environment is built from nothing: PATH and the variables that the operator passes on, what the job says, and the
identity of the run. The payload comes as JSON on standard input. Nothing is ever put into an argument.
"""

import asyncio
import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fleetcron.clock import Clock
from fleetcron.config import ExecutorConfig
from fleetcron.executors.assignment import Assignment, Key
from fleetcron.executors.performer import SUCCEEDED
from fleetcron.executors.programs import Chunks, Program, Programs
from fleetcron.executors.refusals import NO_SHELL
from fleetcron.executors.reports import Declined, Done, LogChunk, Outbox, Tell
from fleetcron.executors.supervisor import End, Order
from fleetcron.executors.verdicts import OVERDUE, Why, limited, signal_name, stopped
from fleetcron.model.outcome import Failed, Fault, Lost, Outcome
from fleetcron.model.target import CommandTarget, Target

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_RESULT: Final = '{"exit_code":0}'


@dataclass(slots=True)
class _Running:
    assignment: Assignment
    started_ms: int
    program: Program
    why: Why | None = None
    reason: str = ""


class Commands:
    """`environment` is the worker's own, from which only what the operator names is passed on."""

    def __init__(
        self, programs: Programs, config: ExecutorConfig, environment: Mapping[str, str], clock: Clock, tell: Tell
    ) -> None:
        self._programs = programs
        self._config = config
        self._environment = environment
        self._clock = clock
        self._outbox = Outbox(tell)
        self._running: dict[Key, _Running] = {}
        self._empty = asyncio.Event()

    async def learn(self, targets: Sequence[Target]) -> None:
        """There is nothing to find out: whether a program is there is seen when it starts."""

    def knows(self, target: Target) -> bool:
        return self.why_not(target) is None

    def why_not(self, target: Target) -> str | None:
        if not isinstance(target, CommandTarget):
            return "it is not a command"
        if target.shell and self._config.shell != "allowed":
            return NO_SHELL
        return None

    def start(self, assignments: Sequence[Assignment]) -> None:
        for assignment in assignments:
            reason = self.why_not(assignment.target)
            if reason is not None:
                self._outbox.put(Declined(assignment.run_id, assignment.attempt, reason))
                continue
            self._start(assignment)

    def cancel(self, run_id: int, attempt: int, reason: str, grace_s: float | None = None) -> None:
        running = self._running.get((run_id, attempt))
        if running is not None:
            self._stop(running, "cancel", reason, grace_s)

    def running(self) -> set[Key]:
        return set(self._running) | self._outbox.ending()

    async def close(self, grace_s: float) -> None:
        for running in self._running.values():
            self._stop(running, "closing", "the worker was stopped", grace_s)
        if self._running:
            self._empty.clear()
            await self._empty.wait()
        self._outbox.flush()

    def _start(self, assignment: Assignment) -> None:
        key = assignment.key
        now_ms = self._clock.monotonic_ms()
        order = order_for(assignment, self._config, self._environment)
        try:
            program = self._programs.start(
                order, lambda chunks: self._logged(key, chunks), lambda end: self._ended(key, end)
            )
        except OSError as error:
            fault = Fault("not_started", f"no room for another process: {error.strerror}")
            self._outbox.put(Done(*key, Failed(fault), now_ms, now_ms))
        else:
            self._running[key] = _Running(assignment, now_ms, program)

    def _stop(self, running: _Running, why: Why, reason: str, grace_s: float | None) -> None:
        if running.why is None:
            running.why, running.reason = why, reason
        running.program.stop(None if grace_s is None else round(grace_s * 1000))

    def _logged(self, key: Key, chunks: Chunks) -> None:
        for seq, text, truncated in chunks:
            self._outbox.put(LogChunk(*key, seq, text, truncated))

    def _ended(self, key: Key, end: End | None) -> None:
        running = self._running.pop(key)
        if not self._running:
            self._empty.set()
        if end is None:
            now_ms = self._clock.monotonic_ms()
            self._outbox.put(Done(*key, _cut_short(running, now_ms), running.started_ms, now_ms))
            return
        outcome = _outcome(running, end)
        result = _RESULT if outcome is SUCCEEDED else None
        started_ms, finished_ms = end["started_ms"], end["finished_ms"]
        self._outbox.put(Done(*key, outcome, started_ms, finished_ms, result, end["tail"], end["total"]))


def order_for(assignment: Assignment, config: ExecutorConfig, environment: Mapping[str, str]) -> Order:
    target = assignment.target
    assert isinstance(target, CommandTarget)
    passed_on = {name: environment[name] for name in config.environment if name in environment}
    return {
        "id": 0,
        "argv": ["/bin/sh", "-c", target.argv[0]] if target.shell else list(target.argv),
        "env": {
            "PATH": environment.get("PATH") or _PATH,
            **passed_on,
            **target.env,
            **assignment.identity(),
        },
        "cwd": target.cwd,
        "stdin": json.dumps(dict(assignment.payload), ensure_ascii=False, separators=(",", ":")),
        "timeout_ms": assignment.timeout_ms,
        "grace_ms": round(config.grace_s * 1000),
    }


def _outcome(running: _Running, end: End) -> Outcome:
    if end["error"] is not None:
        return Failed(Fault(*end["error"]))
    if end["overdue"]:
        return OVERDUE
    if end["timed_out"]:
        return stopped("timeout", running.assignment.timeout_ms, "")
    if end["asked"] and running.why is not None:
        return stopped(running.why, running.assignment.timeout_ms, running.reason)
    code = end["code"]
    if code == 0:
        return SUCCEEDED
    if code is None or code < 0:
        number = signal.SIGKILL if code is None else -code
        return Failed(Fault(f"signal_{number}", _said(f"ended by {signal_name(number)}", end["tail"])))
    return Failed(Fault(f"exit_{code}", _said(f"exit code {code}", end["tail"])))


def _cut_short(running: _Running, now_ms: int) -> Outcome:
    """Its supervisor was killed, and it too. We do that ourselves with one that does not answer when it must."""
    timeout_ms = running.assignment.timeout_ms
    if running.why is not None:
        return stopped(running.why, timeout_ms, running.reason)
    if now_ms - running.started_ms >= timeout_ms:
        return stopped("timeout", timeout_ms, "")
    return Lost(Fault("supervisor_died", "the supervisor of the command was killed"))


def _said(text: str, tail: str) -> str:
    """With its last line, which is most often the reason."""
    last = tail.rstrip()[-2000:].rpartition("\n")[2].strip()
    return limited(f"{text}: {last}" if last else text, 500)
