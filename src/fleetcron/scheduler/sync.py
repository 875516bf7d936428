"""The jobs of a program, brought into the store: created, edited, and put to rest when they are gone from its code.

A job belongs to whoever stands in its `managed_by`. A sync touches only jobs of its own; a name that belongs to
somebody else, or to nobody, is refused, because two sources that write the same job would undo each other for ever.
Files that have a manager go the same way, except that they take over what belongs to nobody: `fleetcron apply` has
always written such jobs.

A job that vanished from the code is paused. When it comes back it is resumed only if the pause was a sync's: the
history says who paused it, and what a person paused stays paused.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from fleetcron.config import SchedulerConfig
from fleetcron.errors import RefusedError
from fleetcron.model.definition import Definition
from fleetcron.model.job import Job
from fleetcron.scheduler.dependencies import Needs, upstream_first
from fleetcron.scheduler.desk import BATCH, Applied, Desk, Name, Refusal
from fleetcron.store.job_pages import JobFilter
from fleetcron.store.store import Store

log = logging.getLogger(__name__)

Prune: TypeAlias = Literal["pause", "delete", "keep"]

_LOOKED_BACK: Final = 1000  # revisions of a paused job: edits may lie above its pause
_SHOWN: Final = 20


async def sync(
    store: Store,
    definitions: Sequence[Definition],
    *,
    managed_by: str,
    prune: Prune = "pause",
    by: str | None = None,
    shards: int = SchedulerConfig().shards,
) -> list[Applied]:
    """What became of each definition, in order, and after them of each job that vanished. Safe to repeat."""
    desk = Desk(store, actor=signature(managed_by, by), shards=shards)
    applied = await desk.apply(definitions, refuse=not_ours(managed_by))
    answers = [await awaken(store, desk, each, managed_by) for each in applied]
    if prune != "keep":
        gone = await vanished(store, {(each.tenant, each.name) for each in definitions}, managed_by)
        answers += await put_to_rest(store, desk, gone, prune, written(definitions, answers))
    return answers


def written(definitions: Sequence[Definition], answers: Sequence[Applied]) -> list[Definition]:
    """The definitions that hold now: those that were not refused."""
    return [each for each, answer in zip(definitions, answers, strict=True) if answer.done != "refused"]


def signature(managed_by: str, by: str | None = None) -> str:
    """What the history says about who did it: `app:shop`, or `app:shop (ann)`."""
    return managed_by if by is None else f"{managed_by} ({by})"


def tell(managed_by: str, applied: Iterable[Applied]) -> None:
    """One line for the log, and one more for each sort of surprise."""
    answers = list(applied)
    counted = Counter(each.done for each in answers)
    log.info("jobs of %s: %s", managed_by, ", ".join(f"{number} {done}" for done, number in counted.items()) or "none")
    for done in ("paused", "deleted", "resumed"):
        if some := [_full(each) for each in answers if each.done == done]:
            log.info("%s by %s: %s", done, managed_by, _listed(some, ", "))
    if refused := [f"{_full(each)}: {each.reason}" for each in answers if each.done == "refused"]:
        log.warning("jobs of %s that were refused: %s", managed_by, _listed(refused, "; "))
    if warned := [f"{_full(each)}: {each.warning}" for each in answers if each.warning is not None]:
        log.warning("jobs of %s that will not run: %s", managed_by, _listed(warned, "; "))


def not_ours(managed_by: str, *, adopting: bool = False) -> Refusal:
    """Why a job is left to somebody else. Who is `adopting` takes over what nobody manages."""

    def refusal(job: Job) -> str | None:
        owner = job.definition.managed_by
        if owner == managed_by or (adopting and owner is None):
            return None
        whose = f"{owner} manages it" if owner else "it was made by hand, or comes from a file"
        return (
            f"there is another job of this name ({whose}), and {managed_by} does not take it over; "
            f"choose another name, or make room: fleetcron jobs delete {job.definition.seed}"
        )

    return refusal


async def awaken(store: Store, desk: Desk, applied: Applied, managed_by: str) -> Applied:
    """The job is in the code: if a sync had paused it because it was not, resume it."""
    job = applied.job
    if job is None or job.state != "paused" or applied.done == "refused":
        return applied
    if not await _was_paused_by(store, job, managed_by):
        return applied
    # who changed it meanwhile may have had a reason; a dry run has not kept the edit, and finds the revision before it
    expected = (job.revision, job.revision - 1) if applied.done == "changed" else (job.revision,)
    try:
        resumed = await desk.resume(applied.tenant, applied.name, only_if=lambda now: now.revision in expected)
    except RefusedError:  # it is gone
        return applied
    if resumed.done != "resumed" or resumed.job is None:
        return applied
    return replace(resumed, job=replace(resumed.job, definition=job.definition))


async def vanished(store: Store, wanted: Collection[Name], managed_by: str) -> list[Job]:
    """The jobs of this manager that are not wanted any more, those first that depend on others: a job that others
    depend on cannot be deleted before them."""
    known = {(job.definition.tenant, job.definition.name): job for job in await _managed(store, managed_by)}
    gone = upstream_first([job.definition for name, job in known.items() if name not in wanted])
    return [known[each.tenant, each.name] for each in reversed(gone)]


async def put_to_rest(
    store: Store, desk: Desk, gone: Iterable[Job], prune: Prune, beside: Iterable[Definition] = ()
) -> list[Applied]:
    """What became of each; nothing of those that rest already, and of those that have another manager by now.

    `beside` were written before: in a dry run the store does not know what they depend on now.
    """
    needs: dict[Name, Collection[str]] = {(each.tenant, each.name): each.depends_on for each in beside}
    answers: list[Applied] = []
    for job in gone:
        done = await _put_to_rest(store, desk, job, prune, needs)
        answers += done
        needs |= {(each.tenant, each.name): () for each in done if each.done == "deleted"}
    return answers


async def _was_paused_by(store: Store, job: Job, managed_by: str) -> bool:
    """The latest pause is the one that holds: a resume would have ended it, and an edit does not."""
    revisions = await store.jobs.revisions(job.job_id, _LOOKED_BACK)
    actor = next((each.actor for each in revisions if each.action == "pause"), "")
    return actor == managed_by or actor.startswith(f"{managed_by} (")


async def _managed(store: Store, managed_by: str) -> list[Job]:
    found: list[Job] = []
    after: tuple[str, str] | None = None
    while True:
        page = await store.jobs.list(JobFilter(managed_by=managed_by, after=after), BATCH)
        found += [line.job for line in page]
        if len(page) < BATCH:
            return found
        after = found[-1].definition.tenant, found[-1].definition.name


async def _put_to_rest(store: Store, desk: Desk, job: Job, prune: Prune, needs: Needs) -> list[Applied]:
    """Nothing, if there is nothing to do: it rests already, or another sync was faster."""
    name = job.definition.tenant, job.definition.name
    owner = job.definition.managed_by
    try:
        if prune == "delete":
            done = await desk.delete(*name, only_if=lambda now: now.definition.managed_by == owner, needs=needs)
        else:
            done = await desk.pause(
                *name, only_if=lambda now: now.definition.managed_by == owner and now.state == "active"
            )
    except RefusedError as error:
        if name not in (await store.jobs.find([name])).standings:
            return []
        return [Applied(*name, "refused", job, reason=str(error))]
    return [] if done.done == "unchanged" else [done]


def _full(applied: Applied) -> str:
    return f"{applied.tenant}/{applied.name}"


def _listed(texts: Sequence[str], between: str) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return between.join(texts[:_SHOWN]) + more
