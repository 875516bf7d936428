"""What people do to runs: ask for one, cancel, replay, discard; and the dead letters.

Every verb is one transaction and safe to repeat. It answers for each run: what was done, or why not.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from fleetcron.errors import DefinitionError, Mistake
from fleetcron.events import Event
from fleetcron.model import payload as payloads
from fleetcron.model.run import RunKind
from fleetcron.model.tenant import MAX_PAYLOAD
from fleetcron.steps import step
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.events import note, note_all
from fleetcron.store.rows import ids, rows
from fleetcron.store.stopping import ask, catch, stop
from fleetcron.store.written import Refused, Written

BATCH: Final = 500
LONGEST_KEY: Final = 200

IN_SHADOW: Final = "is in shadow: the old scheduler still runs it; hand it over first (fleetcron shadow --hand-over)"
# unchanged: it was so already, as when somebody repeats what he asked
Done: TypeAlias = Literal["cancelled", "stopping", "replayed", "discarded", "unchanged", "refused"]
_Answer: TypeAlias = Callable[[int, Row], tuple[Done, str | None]]


@dataclass(frozen=True, slots=True)
class Triggered:
    """`created` is false if this key had asked for it before."""

    run_id: int
    job_id: str
    tenant: str
    name: str
    scheduled_for_ms: int
    created: bool


@dataclass(frozen=True, slots=True)
class Steered:
    """What became of one run. `job` is tenant/name; without it there is no such run."""

    run_id: int
    done: Done
    job: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class DeadFilter:
    """Which dead letters: of a tenant, a job, a type, with an error code, that died in [from, to)."""

    tenant: str | None = None
    name: str | None = None
    type: str | None = None
    error: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None

    def until(self, now_ms: int) -> "DeadFilter":
        """Those of them that are dead by now: what dies again after its replay is not met when that is repeated."""
        return replace(self, to_ms=now_ms + 1 if self.to_ms is None else min(self.to_ms, now_ms + 1))


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead run with its last error."""

    run_id: int
    job_id: str
    tenant: str
    name: str
    type: str
    kind: RunKind
    scheduled_for_ms: int
    finished_ms: int
    attempt: int
    failures: int
    losses: int
    round: int
    outcome: str | None
    error_code: str | None
    error_text: str | None
    node_id: str | None


@dataclass(frozen=True, slots=True)
class DeadCount:
    """`open` of the runs have a job that may run: those can be replayed."""

    runs: int
    open: int
    now_ms: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Replayed:
    """One batch of many; `after_id` is where the next one begins, None after the last."""

    runs: int
    after_id: int | None


class Steering:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def trigger(
        self, job: str | tuple[str, str], payload: Mapping[str, Any] | None, *, actor: str, key: str
    ) -> Written[Triggered]:
        """A run outside the schedule, of a job by its id or by (tenant, name). `key` is the client's: whoever asks
        again with it gets the same run. A DefinitionError if the payload cannot be."""
        _check_asked(payload, key)
        return await self._engine.write(lambda: _trigger(job, payload, actor, key))

    async def enqueue(
        self, job: tuple[str, str], payload: Mapping[str, Any] | None, *, actor: str, key: str
    ) -> Written[Triggered]:
        """As `trigger`, for programs."""
        return await self._engine.write(lambda: enqueueing(job, payload, key, actor=actor))

    async def cancel(self, run_ids: Sequence[int], reason: str | None, *, actor: str) -> Written[list[Steered]]:
        """Whatever has not ended. One answer for each, in order."""
        return await self._engine.write(lambda: _cancel(list(dict.fromkeys(run_ids)), reason, actor))

    async def rounds(self, run_ids: Sequence[int]) -> dict[int, int]:
        """For a replay that may be repeated."""

        def script() -> Script[dict[int, int]]:
            return {row["run_id"]: row["round"] for row in (yield "runs_steered", {"ids": ids(run_ids)})}

        return await self._engine.read(script)

    async def replay(
        self, run_ids: Sequence[int], *, actor: str, rounds: Mapping[int, int] | None = None
    ) -> Written[list[Steered]]:
        """Open dead and cancelled runs again: the same runs, the next round. One answer for each, in order. Only those
        that are still in `rounds`: a run whose replay was done, with its reply lost, may be dead again by now."""
        return await self._engine.write(lambda: _replay(list(dict.fromkeys(run_ids)), actor, rounds))

    async def replay_many(
        self, wanted: DeadFilter, *, actor: str, after_id: int = 0, limit: int = BATCH
    ) -> Written[Replayed]:
        """One batch of the dead letters that are like that, the oldest first. A run that dies again meanwhile is not
        met twice: the next batch begins after the last run of this one. Whoever repeats one says until when they died
        (`DeadFilter.until`)."""
        return await self._engine.write(lambda: _replay_many(wanted, actor, after_id, limit))

    async def discard(self, run_ids: Sequence[int], reason: str, *, actor: str) -> Written[list[Steered]]:
        """Dead runs stay dead, and leave the list of dead letters; a replay takes it back."""
        return await self._engine.write(lambda: _discard(list(dict.fromkeys(run_ids)), reason, actor))

    async def dead(self, wanted: DeadFilter, *, limit: int, before_id: int | None = None) -> list[DeadLetter]:
        """Dead letters that nobody has discarded, the newest first."""

        def script() -> Script[list[DeadLetter]]:
            call = _parameters(wanted) | {"before_id": before_id, "most": limit}
            return [_letter(row) for row in (yield "runs_dead", call)]

        return await self._engine.read(script)

    async def count_dead(self, wanted: DeadFilter) -> DeadCount:
        def script() -> Script[DeadCount]:
            [row] = yield "runs_dead_count", _parameters(wanted)
            return DeadCount(row["runs"], row["open"], row["now_ms"])

        return await self._engine.read(script)


def enqueueing(
    job: tuple[str, str], payload: Mapping[str, Any] | None, key: str, *, actor: str
) -> Script[Triggered | Refused]:
    """A program asks for a run; also in a transaction that is not ours. Unlike a person, who knows what he does when he
    triggers a paused job, a program hears of the pause."""
    _check_asked(payload, key)
    return (yield from _trigger(job, payload, actor, key, even_paused=False))


def _trigger(
    wanted: str | tuple[str, str], payload: Mapping[str, Any] | None, actor: str, key: str, *, even_paused: bool = True
) -> Script[Triggered | Refused]:
    step("trigger.begin")
    job_id, (tenant, name) = (wanted, (None, None)) if isinstance(wanted, str) else (None, wanted)
    found = yield "jobs_asked", {"job_id": job_id, "tenant": tenant, "name": name}
    if not found:
        return Refused(f"there is no job {job_id or f'{name} of tenant {tenant}'}")
    [job] = found
    text = None if payload is None else json.dumps(payload, sort_keys=True, separators=(",", ":"))
    asked = {"job_id": str(job["job_id"]), "key": key}
    known = yield "runs_of_key", asked
    if not known:
        if (refusal := _closed(job["state"], job["deleted_ms"])) is not None:
            return Refused(f"{job['tenant']}/{job['name']} {refusal}: it never runs again")
        if job["state"] == "paused" and not even_paused:
            hint = f"resume it (fleetcron jobs resume {job['tenant']}/{job['name']})"
            return Refused(f"{job['tenant']}/{job['name']} is paused, so nothing was enqueued; {hint}")
        [facts] = yield "fleet_now", {}
        if (job["shadow_ms"] or 0) > facts["now_ms"]:
            return Refused(f"{job['tenant']}/{job['name']} {IN_SHADOW}")
        limits = yield "tenants_list", {"tenant": job["tenant"]}
        _check(payload, limits[0]["max_payload"] if limits else MAX_PAYLOAD)
        made = yield from _make(job, asked, text, actor)
        if made is not None:
            step("trigger.written")
            return made
        known = yield "runs_of_key", asked  # somebody with the same key was faster
    [run] = known
    if run["payload"] != text:
        return Refused(f"the key {key!r} was used before, with another payload")
    return _triggered(job, run["run_id"], run["scheduled_for_ms"], created=False)


def _make(job: Row, asked: Mapping[str, str], payload: str | None, actor: str) -> Script[Triggered | None]:
    [facts] = yield "fleet_now", {}
    now_ms = facts["now_ms"]
    call = {"now_ms": now_ms, "almanac": facts["epoch"], "revision": job["revision"], "payload": payload}
    made = yield "runs_trigger", {**asked, **call, "actor": actor}
    if not made:
        return None
    run_id = made[0]["run_id"]
    coming = {"run_after_ms": now_ms, "run_id": run_id, "job_id": asked["job_id"], "lane": "live"}
    yield "upcoming_insert", {"rows": rows([coming])}
    yield from note(Event("run_triggered", job_id=asked["job_id"], actor=actor, detail={"run": run_id}))
    yield "notify", {"topic": "work"}
    return _triggered(job, run_id, now_ms, created=True)


def _cancel(wanted: list[int], reason: str | None, actor: str) -> Script[list[Steered] | Refused]:
    step("cancel.begin")
    text = f"{reason} (by {actor})" if reason else f"by {actor}"
    caught = yield from catch(wanted)
    step("cancel.caught")
    [facts] = yield "fleet_now", {}
    closed = set((yield from stop(caught.open, f"cancelled: {text}"[:500], facts["now_ms"])))
    asked = caught.held.keys() - caught.asked_before
    yield from ask(asked, text[:400])
    known = {row["run_id"]: row for row in (yield "runs_steered", {"ids": ids(wanted)})}
    yield from note_all(
        Event(
            "run_cancelled",
            job_id=str(known[run_id]["job_id"]),
            actor=actor,
            detail={"run": run_id, "reason": reason, "was": "running" if run_id in asked else "open"},
        )
        for run_id in sorted(closed | asked)
    )
    if closed:
        yield "notify", {"topic": "work"}
    if asked:
        yield "notify", {"topic": "cancels"}
    step("cancel.written")

    def answer(run_id: int, row: Row) -> tuple[Done, str | None]:
        if run_id in closed:
            return "cancelled", None
        if run_id in caught.held:
            return ("stopping", None) if run_id in asked else ("unchanged", "it was asked to stop before")
        return ("unchanged", "it is cancelled") if row["state"] == "cancelled" else ("refused", f"it is {row['state']}")

    return [_steered(run_id, known, answer) for run_id in wanted]


def _replay(wanted: list[int], actor: str, rounds: Mapping[int, int] | None) -> Script[list[Steered] | Refused]:
    step("replay.begin")
    opened = yield from _reopen(wanted, actor, rounds)
    known = {row["run_id"]: row for row in (yield "runs_steered", {"ids": ids(wanted)})}
    step("replay.written")

    def answer(run_id: int, row: Row) -> tuple[Done, str | None]:
        if run_id in opened:
            return "replayed", None
        if row["finished_ms"] is None:
            return "unchanged", "it has not ended: nothing to replay"
        if rounds is not None and row["round"] > rounds.get(run_id, row["round"]):
            return "unchanged", f"it was replayed meanwhile, and is {row['state']} since"
        if row["state"] in ("dead", "cancelled"):
            return "refused", f"its job {_closed(row['job_state'], row['deleted_ms']) or IN_SHADOW}"
        if row["state"] == "succeeded":
            return "refused", f"it has succeeded; for another run: fleetcron jobs trigger {row['tenant']}/{row['name']}"
        return "refused", f"it is {row['state']}: only dead and cancelled runs can be replayed"

    return [_steered(run_id, known, answer) for run_id in wanted]


def _replay_many(wanted: DeadFilter, actor: str, after_id: int, limit: int) -> Script[Replayed | Refused]:
    step("replay.begin")
    found = yield "runs_dead_after", _parameters(wanted) | {"after_id": after_id, "most": limit}
    run_ids = [row["run_id"] for row in found]
    opened = yield from _reopen(run_ids, actor)
    step("replay.written")
    return Replayed(len(opened), run_ids[-1] if len(run_ids) == limit else None)


def _reopen(wanted: Sequence[int], actor: str, rounds: Mapping[int, int] | None = None) -> Script[set[int]]:
    """Never before the instant at which the run may start: somebody may have cancelled it ahead of its time."""
    if rounds is not None:
        wanted = [run_id for run_id in wanted if run_id in rounds]
    if not wanted:
        return set()
    [facts] = yield "fleet_now", {}
    asked = rows({"run_id": run_id, "round": None if rounds is None else rounds[run_id]} for run_id in sorted(wanted))
    opened = yield "runs_reopen", {"rows": asked, "actor": actor}
    coming = [
        {
            "run_after_ms": max(facts["now_ms"], row["run_after_ms"]),
            "run_id": row["run_id"],
            "job_id": str(row["job_id"]),
            "lane": "catchup",
        }
        for row in opened
    ]
    if coming:
        yield "upcoming_insert", {"rows": rows(coming)}
        yield from note_all(_by_job("run_replayed", opened, actor, {}))
        yield "notify", {"topic": "work"}
    return {row["run_id"] for row in opened}


def _discard(wanted: list[int], reason: str, actor: str) -> Script[list[Steered] | Refused]:
    step("discard.begin")
    [facts] = yield "fleet_now", {}
    done = yield "runs_discard", {"ids": ids(wanted), "now_ms": facts["now_ms"], "reason": reason}
    yield from note_all(_by_job("run_discarded", done, actor, {"reason": reason}))
    known = {row["run_id"]: row for row in (yield "runs_steered", {"ids": ids(wanted)})}
    discarded = {row["run_id"] for row in done}
    step("discard.written")

    def answer(run_id: int, row: Row) -> tuple[Done, str | None]:
        if run_id in discarded:
            return "discarded", None
        if row["discarded_ms"] is not None:
            return "unchanged", "it was discarded before"
        state = row["state"] if row["finished_ms"] is not None else "not over"
        return "refused", f"it is {state}: only dead runs can be discarded"

    return [_steered(run_id, known, answer) for run_id in wanted]


def _steered(run_id: int, known: Mapping[int, Row], answer: _Answer) -> Steered:
    row = known.get(run_id)
    if row is None:
        return Steered(run_id, "refused", reason="there is no such run")
    done, reason = answer(run_id, row)
    return Steered(run_id, done, f"{row['tenant']}/{row['name']}", reason)


def _by_job(kind: str, found: Sequence[Row], actor: str, detail: Mapping[str, Any]) -> Iterable[Event]:
    """One event for each job, with all its runs: many may be meant."""
    runs: dict[str, list[int]] = {}
    for row in found:
        runs.setdefault(str(row["job_id"]), []).append(row["run_id"])
    for job_id, mine in sorted(runs.items()):
        yield Event(kind, job_id=job_id, actor=actor, count=len(mine), detail={"runs": sorted(mine), **detail})


def _closed(state: str, deleted_ms: int | None) -> str | None:
    """Why nothing of a job may run."""
    if deleted_ms is not None:
        return "is deleted"
    return "is cancelled" if state == "cancelled" else None


def _check_asked(payload: Mapping[str, Any] | None, key: str) -> None:
    if not 0 < len(key) <= LONGEST_KEY:
        raise DefinitionError([Mistake("/key", f"must have 1 to {LONGEST_KEY} characters")])
    if not payloads.is_storable(key):
        detail = "has a character that cannot be stored (NUL or half a surrogate pair)"
        raise DefinitionError([Mistake("/key", detail, "remove it")])
    _check(payload, MAX_PAYLOAD)  # more than that nobody may; the tenant's own limit is asked in the transaction


def _check(payload: Mapping[str, Any] | None, most: int) -> None:
    found = [] if payload is None else payloads.problems(payload, most)
    if found:
        raise DefinitionError(
            [Mistake("".join(f"/{part}" for part in ("payload", *path)), text, hint) for path, text, hint in found]
        )


def _triggered(job: Row, run_id: int, scheduled_for_ms: int, *, created: bool) -> Triggered:
    return Triggered(run_id, str(job["job_id"]), job["tenant"], job["name"], scheduled_for_ms, created)


def _parameters(wanted: DeadFilter) -> dict[str, Any]:
    return {
        "tenant": wanted.tenant,
        "name": wanted.name,
        "type": wanted.type,
        "error": wanted.error,
        "from_ms": wanted.from_ms,
        "to_ms": wanted.to_ms,
    }


def _letter(row: Row) -> DeadLetter:
    return DeadLetter(
        row["run_id"], str(row["job_id"]), row["tenant"], row["name"], row["type"], row["kind"],
        row["scheduled_for_ms"], row["finished_ms"], row["attempt"], row["failures"], row["losses"], row["round"],
        row["outcome"], row["error_code"], row["error_text"], row["node_id"],
    )  # fmt: skip
