"""What people do to jobs in the middle of it all: edit, pause, resume, trigger. Only what was confirmed counts."""

from collections.abc import Sequence
from random import Random  # noqa: TID251 - whoever starts a torture gives it its chance
from typing import Final, TypeAlias

from fleetcron.errors import RefusedError, StoreError
from fleetcron.model.definition import Definition
from fleetcron.model.rules import MisfirePolicy
from fleetcron.scheduler.desk import Applied, Desk
from fleetcron.store.store import Store
from fleetcron.store.written import Ok
from fleetcron.torture.evidence import Act
from fleetcron.torture.jobs import TENANT, edited, may_be_edited, may_be_paused, resume_policies

ACTOR: Final = "torture"
_STEPS: Final = (2, 3, 5)
Done: TypeAlias = tuple[str, str]  # what was done, to which job


class Acts:
    """`confirmed` is what the store has answered with yes, `unanswered` how often it did not answer."""

    def __init__(self, store: Store, jobs: Sequence[Definition], chance: Random, *, shards: int) -> None:
        self._store = store
        self._desk = Desk(store, actor=ACTOR, shards=shards)
        self._jobs = jobs
        self._chance = chance
        self._paused: set[str] = set()
        self._triggered = 0
        self.confirmed: list[Act] = []
        self.unanswered = 0

    async def create(self) -> None:
        for applied in await self._desk.apply(self._jobs, strict=True):
            if applied.done != "created":
                raise RefusedError(f"the job {applied.name} was {applied.done}: {applied.reason}")
            self._note("create", applied)

    async def any(self) -> Done | None:
        """One of them, by chance; None if the store did not answer or the job had ended."""
        verb = self._chance.choice((self._edit, self._pause_or_resume, self._pause_or_resume, self._trigger))
        try:
            return await verb()
        except (StoreError, RefusedError):
            self.unanswered += 1
            return None

    async def resume_all(self) -> None:
        for name in sorted(self._paused):
            await self._resume(name, None)

    async def pause_all(self) -> None:
        """The last thing: no tick is due from now on."""
        for job in self._jobs:
            try:
                self._note("pause", await self._desk.pause(TENANT, job.name))
            except RefusedError:  # it has had all its ticks
                continue

    async def _edit(self) -> Done:
        job = self._chance.choice(may_be_edited(self._jobs))
        step = self._chance.choice(_STEPS)
        self._note("edit", await self._desk.edit(edited(job, step)))
        return f"every {step} s", job.name

    async def _pause_or_resume(self) -> Done:
        job = self._chance.choice(may_be_paused(self._jobs))
        policy = self._chance.choice(resume_policies(job))
        if job.name in self._paused:
            await self._resume(job.name, policy)
            return f"resume, {policy}", job.name
        self._paused.add(job.name)  # also if nobody knows
        self._note("pause", await self._desk.pause(TENANT, job.name, policy))
        return f"pause, {policy}", job.name

    async def _resume(self, name: str, policy: MisfirePolicy | None) -> None:
        self._note("resume", await self._desk.resume(TENANT, name, policy))
        self._paused.discard(name)

    async def _trigger(self) -> Done:
        job = self._chance.choice(self._jobs)
        self._triggered += 1
        key = f"{ACTOR}-{self._triggered}"
        written = await self._store.steering.trigger((TENANT, job.name), None, actor=ACTOR, key=key)
        if not isinstance(written, Ok):
            raise RefusedError(f"{job.name} could not be triggered")
        run = written.value
        self.confirmed.append(Act("trigger", job.name, run.scheduled_for_ms, run_id=run.run_id))
        return "trigger", job.name

    def _note(self, action: str, applied: Applied) -> None:
        if applied.job is not None and applied.done not in ("unchanged", "refused"):
            self.confirmed.append(Act(action, applied.name, applied.job.updated_ms, applied.job.revision))
