"""All executors of a worker behind one: each assignment goes to whoever can run its target."""

import asyncio
from collections.abc import Mapping, Sequence

from fleetcron.executors.assignment import Assignment, Key
from fleetcron.executors.executor import Executor
from fleetcron.executors.reports import Declined, Outbox, Tell
from fleetcron.model.target import Target, unserved


class ByTarget:
    def __init__(self, executors: Mapping[type, Executor], tell: Tell) -> None:
        self._executors = executors
        self._outbox = Outbox(tell)

    async def learn(self, targets: Sequence[Target]) -> None:
        for kind, executor in self._executors.items():
            if some := [target for target in targets if isinstance(target, kind)]:
                await executor.learn(some)

    def knows(self, target: Target) -> bool:
        executor = self._executors.get(type(target))
        return executor is not None and executor.knows(target)

    def why_not(self, target: Target) -> str | None:
        executor = self._executors.get(type(target))
        return _nobody(target) if executor is None else executor.why_not(target)

    def start(self, assignments: Sequence[Assignment]) -> None:
        shares: dict[type, list[Assignment]] = {}
        for assignment in assignments:
            shares.setdefault(type(assignment.target), []).append(assignment)
        for kind, share in shares.items():
            if kind in self._executors:
                self._executors[kind].start(share)
            else:
                for one in share:
                    self._outbox.put(Declined(one.run_id, one.attempt, _nobody(one.target)))

    def cancel(self, run_id: int, attempt: int, reason: str, grace_s: float | None = None) -> None:
        for executor in self._executors.values():
            executor.cancel(run_id, attempt, reason, grace_s)

    def running(self) -> set[Key]:
        return {key for executor in self._executors.values() for key in executor.running()}

    async def close(self, grace_s: float) -> None:
        await asyncio.gather(*(executor.close(grace_s) for executor in self._executors.values()))
        self._outbox.flush()


def _nobody(target: Target) -> str:
    return unserved(target) or f"this worker has no executor for a {type(target).__name__}"
