"""Whose a job is that an import finds under its own name. What an import applies it marks with where it was read
(`managed_by: import:web1/etc/crontab`), and it changes only what has that mark: two machines may both have a `backup`.
"""

import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fleetcron.applying.apply import Report, apply, managing, standings
from fleetcron.clock import utc_now
from fleetcron.config import Config
from fleetcron.imports.plan import Plan
from fleetcron.model.definition import Definition
from fleetcron.model.job import Job
from fleetcron.model.reading import Documents, read_definitions
from fleetcron.store.store import Store
from fleetcron.times.instants import to_ms

_LONGEST = 200  # of a managed_by
_OTHERWISE = "--prefix NAME- gives every job of this import another name, and a comment above its line one of them"


def mark(file: str, by: str, host: str) -> str:
    """Where it was read. Standard input has no name: there it is who called."""
    place = f"/{by}/-" if file == "standard input" else str(Path(file).resolve()) if Path(file).exists() else f"/{file}"
    whole = "".join(letter if letter.isprintable() else "?" for letter in f"import:{host}{place}")
    return whole if len(whole) <= _LONGEST else f"{whole[:99]}…{whole[-100:]}"


async def carry_out(
    store: Store, plan: Plan, *, by: str, config: Config, progress: Callable[[int], None] = lambda _: None
) -> Report:
    """Apply what is new, and what is our own; refuse the rest, job by job. A rehearsal goes the same way."""
    host = socket.gethostname()
    read = read_definitions(plan.as_document()).jobs
    marks = {_name(each): mark(job.origin.file, by, host) for each, job in zip(read, plan.jobs, strict=True)}
    wanted = await _marked(store, read, marks)
    return await apply(
        store,
        Documents(jobs=wanted),
        actor=by,
        shards=config.scheduler.shards,
        progress=progress,
        refuse=_others(wanted, marks, is_shadow=plan.wish.shadow, now_ms=to_ms(utc_now())),
    )


async def _marked(store: Store, read: Sequence[Definition], marks: Mapping[tuple[str, str], str]) -> list[Definition]:
    """With the mark, unless the store has the very same job: whoever made it keeps it."""
    known = {name: standing.job.definition for name, standing in (await standings(store, read)).items()}
    return [
        known[_name(each)]
        if _name(each) in known and _is_same(each, known[_name(each)])
        else replace(each, managed_by=marks[_name(each)])
        for each in read
    ]


def _others(
    wanted: Iterable[Definition], marks: Mapping[tuple[str, str], str], *, is_shadow: bool, now_ms: int
) -> Callable[[Job], str | None]:
    ours = {_name(each): each for each in wanted}

    def refusal(job: Job) -> str | None:
        there = job.definition
        if is_shadow and (there.shadow_ms or 0) <= now_ms:
            return (
                "is live already: with the old scheduler it would run twice, and an import puts no job into shadow. If"
                f" it is this job: fleetcron shadow --back {there.seed}; if not, {_OTHERWISE}"
            )
        if there.managed_by == marks[_name(there)] or _is_same(ours[_name(there)], there):
            return None
        whose = there.managed_by or "made by hand, from a file, or by an import long ago"
        is_of_files = there.managed_by and not there.managed_by.startswith("app:")
        way = f" with {managing(whose)}" if is_of_files else ""
        return (
            f"there is another job of this name already ({whose}), and an import changes only jobs that it has made"
            f" from the same file; {_OTHERWISE}. If it is this job, write a file (-o) and apply that{way}"
        )

    return refusal


def _is_same(ours: Definition, there: Definition) -> bool:
    """Whether they do the same. The description names a line, which moves; the shadow is no matter of a file."""
    return replace(ours, managed_by=there.managed_by, shadow_ms=there.shadow_ms, description=there.description) == there


def _name(definition: Definition) -> tuple[str, str]:
    return definition.tenant, definition.name
