"""Handlers of a rehearsal: one for each job, whatever the job runs outside. They are called on virtual time, by the
executor that `isolation: inline` has: timeouts, results, logs and ways to end early are the real ones.

A command or an HTTP call is not made: a stand-in takes its place. A plain function is called at the instant of its
start and takes no time; what is to take time is a coroutine that sleeps, on virtual time too.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from fleetcron.clock import Clock
from fleetcron.config import ExecutorConfig
from fleetcron.executors.assignment import Assignment, Key
from fleetcron.executors.context import Context
from fleetcron.executors.executor import Executor
from fleetcron.executors.handlers import Handlers
from fleetcron.executors.inline import Inline
from fleetcron.executors.reports import Done, Report, Tell
from fleetcron.model.outcome import Outcome, Succeeded
from fleetcron.model.target import PythonTarget, Target
from fleetcron.worker.hands import MakeExecutor

_CONFIG: Final = ExecutorConfig()


class EndsAs(Exception):
    """Raised by whoever plays an attempt that is over: this is its outcome, with the code of its fault and all."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        super().__init__(type(outcome).__name__)


class Cast:
    """Who plays which job: `cast.give("default/report", function)`. A name is `tenant/name`."""

    def __init__(
        self, otherwise: Callable[[Context], Any] | None = None, *, patience_s: float = _CONFIG.grace_s
    ) -> None:
        """`otherwise` plays every job that nobody was given for. Who is asked to stop is killed after `patience_s`."""
        self.config = replace(_CONFIG, grace_s=patience_s)
        self._handlers = Handlers(())
        self._otherwise = otherwise
        self._outcomes: dict[Key, Outcome] = {}  # said, and not told yet

    def give(self, job: str, function: Callable[..., Any]) -> None:
        """Any shape that a handler may have. An UnknownHandler says why it cannot be one."""
        read = Handlers(())
        read.add(job, function)
        known = read.get(job)
        assert known is not None

        async def play(ctx: Context) -> Any:
            try:
                value = function(*known.given(ctx))
                return await value if inspect.isawaitable(value) else value
            except EndsAs as end:
                self._outcomes[ctx.run_id, ctx.attempt] = end.outcome
                return None

        self._handlers.add(job, play)

    def has(self, job: str) -> bool:
        return self._handlers.get(job) is not None

    def executor(self, clock: Clock) -> MakeExecutor:
        def make(pool: str, slots: int, tell: Tell) -> Executor:
            del pool
            return _Rehearsed(self, slots, clock, tell)

        return make

    def ready(self, job: str) -> None:
        if self._otherwise is not None and not self.has(job):
            self.give(job, self._otherwise)

    def as_said(self, done: Done) -> Done:
        """Whoever was stopped has not come to its own end."""
        said = self._outcomes.pop((done.run_id, done.attempt), None)
        return done if said is None or not isinstance(done.outcome, Succeeded) else done._replace(outcome=said)

    @property
    def handlers(self) -> Handlers:
        return self._handlers


class _Rehearsed(Inline):
    def __init__(self, cast: Cast, slots: int, clock: Clock, tell: Tell) -> None:
        super().__init__(cast.handlers, cast.config, slots, clock, tell)
        self._cast = cast

    async def learn(self, targets: Sequence[Target]) -> None:
        del targets  # who plays a job is known by its name, when it starts

    def knows(self, target: Target) -> bool:
        del target
        return True

    def why_not(self, target: Target) -> str | None:
        del target
        return None

    def start(self, assignments: Sequence[Assignment]) -> None:
        played = []
        for each in assignments:
            name = f"{each.tenant}/{each.job}"
            self._cast.ready(name)
            played.append(each._replace(target=PythonTarget(name)))
        super().start(played)

    def _told(self, reports: Sequence[Report]) -> None:
        super()._told([self._cast.as_said(each) if isinstance(each, Done) else each for each in reports])
