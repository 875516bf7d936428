"""Part of queueing: ticks that nobody queued in time get the answer of their job's misfire rule.

Workers may have been away for a day while ticks were planned: hundreds of thousands of runs. Whatever there is, one
transaction reads and answers about `LATE_MOST` of them, the oldest of each job. A job of which that is not all is
decided as far as its newest ticks allow; from there on its runs go back to where they came from, until the next
transaction. So do those of a job whose oldest were not taken: in a burst the newest are taken, too, and of these alone
one after the other would be the latest.

A job whose rule a newer release has written, with something that this one does not know, is left to a worker that can
read it: all its late ticks go back.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import Any, Final, Protocol, TypeAlias

from fleetcron.model.kept import UNREADABLE
from fleetcron.model.queued import Close, Late, Unqueued
from fleetcron.model.rules import MisfireRule
from fleetcron.model.writing import misfire_from
from fleetcron.store.closing import close_runs
from fleetcron.store.engine import Row, Script
from fleetcron.store.rows import ids, rows

LATE_MOST: Final = 5_000  # 0.4 s to 0.9 s on either engine; a store's deadline is 5 s
_FEWEST: Final = 3  # of a job: one to answer, one to be sure of that, one that says when its grace ended
_NOTHING: Final = -(2**63)  # before all ticks


class Lateness(Protocol):
    """What becomes of the ticks of a job that are due (policy/late)."""

    def __call__(
        self, ticks: Sequence[Unqueued], rule: MisfireRule, now_ms: int, newest: Sequence[Unqueued] | None = None, /
    ) -> Late: ...


@dataclass(frozen=True, slots=True)
class Said:
    """Of the runs that were taken, and of others that were late with them."""

    closed: set[int] = field(default_factory=set)
    caught_up: set[int] = field(default_factory=set)
    put_back: set[int] = field(default_factory=set)
    unreadable: set[str] = field(default_factory=set)  # jobs, whose ticks are among these


@dataclass(slots=True)
class _Backlog:
    """The first ticks of a job that are due and not queued. `newest`: there are more, and these are the last of them;
    None: there are no more."""

    rule: MisfireRule
    at_ms: Sequence[int]  # the instants of the first ones
    ticks: list[Unqueued]
    newest: list[Unqueued] | None = None

    @property
    def telling(self) -> int:
        """So many of the newest decide about those before them. The last may be in its grace."""
        return 1 + (self.rule.limit if self.rule.policy == "all" else 1)


_Decided: TypeAlias = dict[str, tuple[_Backlog, Late]]  # by job


def answer_late(taken: Sequence[Row], late: Lateness | None, now_ms: int, most: int) -> Script[Said]:
    """Close the runs that will not start because nobody was there when they were due, and say which are caught up."""
    since: dict[str, int] = {}
    for row in taken:
        if row["fresh_tick"] and row["due_ms"] < now_ms:
            job_id = str(row["job_id"])
            since[job_id] = min(row["scheduled_for_ms"], since.get(job_id, row["scheduled_for_ms"]))
    if late is None or not since:
        return Said()
    after_ms = yield from _too_soon(since, now_ms)
    first = {job_id: from_ms for job_id, from_ms in since.items() if job_id not in after_ms}
    backlogs, unreadable = yield from _backlogs(first, now_ms, most)
    decided = _decided(backlogs, late, now_ms)
    after_ms |= dict.fromkeys(unreadable, _NOTHING)
    first = {job_id: from_ms for job_id, from_ms in first.items() if job_id not in unreadable}
    back = _undecided(taken, decided, after_ms)
    if first and len(back) == len(taken):
        # Nobody can be answered: the newest ticks of all these jobs were late when they were planned, and tell nothing.
        job_id = next(iter(first))
        decided[job_id] = yield from _alone(job_id, first[job_id], late, now_ms, most)
        back = _undecided(taken, decided, after_ms)
    closes = [close for _, said in decided.values() for close in said.closes]
    caught_up = [run_id for _, said in decided.values() for run_id in said.caught_up]
    if closes:
        yield from close_runs((yield from _ours(taken, closes)), now_ms)
    if caught_up:
        yield "runs_set_lane", {"ids": ids(caught_up)}
    if back:
        yield "upcoming_insert", {"rows": rows(map(_upcoming_row, back))}
    return Said({each.run_id for each in closes}, set(caught_up), {row["run_id"] for row in back}, unreadable)


def _ours(taken: Sequence[Row], closes: Sequence[Close]) -> Script[list[Close]]:
    """Only what can move no more may be closed: what was taken, and others that are taken off their way here. Somebody
    who cancels one has its row in `upcoming` and comes for its run; who has the run and comes for the row waits for him
    for ever. That one is left to him, or to the next transaction."""
    have = {row["run_id"] for row in taken}
    others = sorted({each.run_id for each in closes} - have)
    if others:
        have |= {row["run_id"] for row in (yield "upcoming_withdraw_free", {"ids": ids(others)})}
    return [each for each in closes if each.run_id in have]


def _too_soon(since: Mapping[str, int], now_ms: int) -> Script[dict[str, int]]:
    """The jobs of which nothing is decided yet, since their oldest ticks were not taken."""
    found = yield "runs_unqueued_earlier", {"rows": _asked(since), "now_ms": now_ms}
    return {str(row["job_id"]): _NOTHING for row in found}


def _decided(backlogs: Mapping[str, _Backlog], late: Lateness, now_ms: int) -> _Decided:
    return {job_id: (each, late(each.ticks, each.rule, now_ms, each.newest)) for job_id, each in backlogs.items()}


def _backlogs(since: Mapping[str, int], now_ms: int, most: int) -> Script[tuple[dict[str, _Backlog], set[str]]]:
    """And the jobs whose rule cannot be read."""
    backlogs: dict[str, _Backlog] = {}
    unreadable: set[str] = set()
    if not since:
        return backlogs, unreadable
    each = max(_FEWEST, most // len(since))
    found = yield "runs_unqueued_first", {"rows": _asked(since), "now_ms": now_ms, "most": each}
    for job_id, some in groupby(found, key=lambda row: str(row["job_id"])):
        first = list(some)
        if first[0]["misfire"] is not None:
            try:
                rule = _rule(first[0]["misfire"])
            except UNREADABLE:
                unreadable.add(job_id)
                continue
            backlogs[job_id] = _Backlog(rule, [row["scheduled_for_ms"] for row in first], list(map(_unqueued, first)))
    cut = {job_id: b for job_id, b in backlogs.items() if len(b.ticks) == each}
    yield from _look_ahead(cut, now_ms, most)
    seen = {job_id: b for job_id, b in cut.items() if b.newest}
    if seen and most // len(seen) > each:
        yield from _read_on(seen, now_ms, most // len(seen))
    return backlogs, unreadable


def _look_ahead(cut: Mapping[str, _Backlog], now_ms: int, most: int) -> Script[None]:
    """Find the newest ticks of jobs of which there may be more: `most` of them, or as many as one job needs. The others
    are decided without, as far as that is possible."""
    for each in cut.values():
        each.newest = []
    left = most
    asking = [job_id for job_id, each in cut.items() if each.rule.policy != "skip"]
    for telling, group in groupby(sorted(asking, key=lambda job_id: cut[job_id].telling), lambda j: cut[j].telling):
        some = list(group)[: max(left // telling, left == most)]
        if not some:
            return
        left -= telling * len(some)
        asked = rows({"job_id": job_id, "after_ms": cut[job_id].at_ms[-1]} for job_id in some)
        found = yield "runs_unqueued_last", {"rows": asked, "now_ms": now_ms, "most": telling}
        newest: dict[str, list[Unqueued]] = {job_id: [] for job_id in some}
        for row in found:
            newest[str(row["job_id"])].append(_unqueued(row))
        for job_id, ticks in newest.items():
            if len(ticks) < telling:  # these were all
                cut[job_id].ticks += ticks
                cut[job_id].newest = None
            else:
                cut[job_id].newest = ticks


def _read_on(seen: Mapping[str, _Backlog], now_ms: int, each: int) -> Script[None]:
    """Of so many jobs the newest ticks could be found, and of the others nothing may be decided: so more of these is
    read. Otherwise a transaction would answer a few ticks of a few jobs, and put thousands back for it."""
    asked = _asked({job_id: backlog.at_ms[0] for job_id, backlog in seen.items()})
    found = yield "runs_unqueued_first", {"rows": asked, "now_ms": now_ms, "most": each}
    for job_id, some in groupby(found, key=lambda row: str(row["job_id"])):
        backlog, first = seen[job_id], list(some)
        known = {row["run_id"] for row in first}
        newest = backlog.newest or []
        after = [tick for tick in newest if tick.run_id not in known]
        backlog.at_ms, backlog.ticks = [row["scheduled_for_ms"] for row in first], list(map(_unqueued, first))
        if len(after) < len(newest):  # they meet: these are all
            backlog.ticks += after
            backlog.newest = None


def _alone(job_id: str, from_ms: int, late: Lateness, now_ms: int, most: int) -> Script[tuple[_Backlog, Late]]:
    """One job is looked at much farther. If that tells nothing either, thousands of its ticks in a row were late when
    they were planned: it is decided by what was read, and may run once more than it should, rather than never."""
    backlogs, _ = yield from _backlogs({job_id: from_ms}, now_ms, most)
    each, said = _decided(backlogs, late, now_ms)[job_id]
    if said.decided == 0:
        said = late(each.ticks, each.rule, now_ms)._replace(decided=len(each.ticks))
    return each, said


def _undecided(taken: Sequence[Row], decided: _Decided, after_ms: Mapping[str, int]) -> list[Row]:
    """What was taken of jobs that are not wholly decided, after the last tick that is. Also what is in time: the ticks
    of a job keep their order, and the next tick says until when one is in its grace."""
    after_ms = {**after_ms}
    for job_id, (each, said) in decided.items():
        if said.decided is not None:
            after_ms[job_id] = each.at_ms[said.decided - 1] if said.decided else _NOTHING
    return [
        row for row in taken
        if row["fresh_tick"] and row["scheduled_for_ms"] > after_ms.get(str(row["job_id"]), row["scheduled_for_ms"])
    ]  # fmt: skip


@lru_cache(maxsize=1024)
def _rule(text: str) -> MisfireRule:
    """Most jobs of a burst have the same one."""
    return misfire_from(json.loads(text))


def _asked(since: Mapping[str, int]) -> str:
    return rows({"job_id": job_id, "from_ms": from_ms} for job_id, from_ms in sorted(since.items()))


def _unqueued(row: Row) -> Unqueued:
    return Unqueued(row["run_id"], row["due_ms"], row["created_ms"])


def _upcoming_row(row: Row) -> dict[str, Any]:
    return {"run_after_ms": row["due_ms"], "run_id": row["run_id"], "job_id": str(row["job_id"]), "lane": row["lane"]}
