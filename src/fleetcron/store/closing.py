"""Parts of other verbs: end runs that nobody holds, and let those look again that waited for what is free now."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from fleetcron.model.queued import Close
from fleetcron.model.rules import Lane
from fleetcron.store.engine import Script
from fleetcron.store.rows import ids, rows, texts

# What an answer lets go of those that wait for its job: all, if they are few. If every end woke a whole backlog, which
# stands in front of all that came later, nobody else would get a turn: a claim looks at nine or more for one end.
_FEW: Final = 64
_OF_MANY: Final = 4  # the first of every queue, and the first from the tick on: among those is who waited for just this
_FOLLOWING: Final = 2  # for each that got through: so all get through that can, ever faster


def close_runs(closes: Sequence[Close], now_ms: int) -> Script[list[int]]:
    """Give runs their answer. Only those that had none are returned; whoever waited for them is let go on."""
    closed, _ = yield from close_and_free(closes, now_ms)
    return closed


def close_and_free(closes: Sequence[Close], now_ms: int) -> Script[tuple[list[int], set[str]]]:
    """The runs that were closed, and the pools that have something to claim because of it.

    Their places in the queue first: so does a claim, which locks those of a job that moved to its pool, and comes for
    the runs then. Who came for a run and wanted its place after it would wait for that claim, which waits for him."""
    if not closes:
        return [], set()
    heirs = [{"run_id": each.run_id, "heir": each.heir} for each in closes if each.heir is not None]
    if heirs:
        yield "queue_inherit", {"rows": rows(heirs)}
    left = yield "queue_delete", {"ids": ids(each.run_id for each in closes)}
    text = rows(each._asdict() for each in closes)
    done = yield "runs_close", {"rows": text, "now_ms": now_ms}
    closed = [row["run_id"] for row in done]
    merged = {each.run_id for each in closes if each.covered_by is not None}
    if merged:
        yield "runs_cover", {"ids": ids(run for run in closed if run in merged)}
    keys = {row["claim_key"] for row in left if row["claim_key"] is not None}
    freed = yield from release_keys(sorted(keys), most=1, now_ms=now_ms)
    freed |= yield from release_former(str(row["job_id"]) for row in done)
    freed |= yield from release_downstream((str(row["job_id"]), row["scheduled_for_ms"]) for row in done)
    return closed, freed


def release(
    gates: Iterable[tuple[str, str]],
    most: int,
    *,
    pool: str | None = None,
    lane: Lane | None = None,
    due_ms: int | None = None,
) -> Script[set[str]]:
    """Let the first runs that wait at these gates be looked at again: of every queue, since nobody may be serving the
    one of the very first. The pools that have something to claim now."""
    found = [{"gate": gate, "key": key} for gate, key in gates]
    if not found:
        return set()
    freed = yield "queue_release", {"rows": rows(found), "most": most, "pool": pool, "lane": lane, "due_ms": due_ms}
    return {row["pool"] for row in freed}


def release_keys(keys: Iterable[str], most: int, now_ms: int) -> Script[set[str]]:
    """The same for keys that were given back. Those who wait for a key that several jobs share are called: each is
    looked at by the next claim of its pool, and until then others see whose turn it is (policy/turns)."""
    found = list(keys)
    called = [key for key in found if is_shared(key)]
    freed = yield from release((("key", key) for key in found if not is_shared(key)), most)
    if called:
        freed |= {row["pool"] for row in (yield "queue_call", {"keys": texts(called), "most": most, "now_ms": now_ms})}
    return freed


def is_shared(key: str) -> bool:
    """Whether runs of several jobs may wait for the key: a `concurrency_key`, and not that of a job itself."""
    return key.startswith("k:")


def release_former(job_ids: Iterable[str]) -> Script[set[str]]:
    """Runs of these jobs that waited for one of their own, which held a key that the job had before an edit."""
    return (yield from release((("former", job_id) for job_id in sorted(set(job_ids))), _FEW))


def release_downstream(answered: Iterable[tuple[str, int]]) -> Script[set[str]]:
    """Runs that waited for these jobs and ticks. If they are many, the first ones, since a run can answer for ticks
    before its own, and those from its tick on, since the first ones may wait for another. Whoever gets through lets
    others follow (`release_following`), and everybody is looked at now and then."""
    ticks = sorted(set(answered))
    keys = list(dict(ticks))
    found = (yield "queue_crowds", {"keys": texts(keys), "most": _FEW + 1, "front": 0}) if keys else []
    waiting = {row["key"]: row["waiting"] for row in found}
    few = [(job_id, None) for job_id in keys if 0 < waiting[job_id] <= _FEW]
    many = [job_id for job_id in keys if waiting[job_id] > _FEW]
    first = [(job_id, None) for job_id in many] + [each for each in ticks if each[0] in many]
    return (yield from _release_from(few, _FEW)) | (yield from _release_from(first, _OF_MANY))


def release_following(passed: Iterable[tuple[str, int]], pool: str) -> Script[set[str]]:
    """Runs of a pool got past upstream jobs that they had waited for (upstream job, tick of the run): those after them
    may as well."""
    places = Counter(passed)
    return (yield from _release_from(sorted(places), _FOLLOWING * max(places.values(), default=0), pool))


def _release_from(places: Sequence[tuple[str, int | None]], most: int, pool: str | None = None) -> Script[set[str]]:
    """The first that wait for each job, whose tick is not before an instant."""
    if not places:
        return set()
    found = rows({"gate": "upstream", "key": job_id, "from_ms": from_ms} for job_id, from_ms in places)
    freed = yield "queue_release", {"rows": found, "most": most, "pool": pool, "lane": None, "due_ms": None}
    return {row["pool"] for row in freed}
