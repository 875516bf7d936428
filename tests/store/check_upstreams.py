"""Checks of the conformance suite about dependencies: what is known of the upstream jobs of a run, on every engine.

Runs and ledger lines are put in as rows: what a period is must hold for every history, however it came about.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from fleetcron.errors import RefusedError
from fleetcron.model.definition import Definition
from fleetcron.model.queued import Queued
from fleetcron.model.rules import CronEntry
from fleetcron.model.target import CommandTarget
from fleetcron.model.upstream import FRONT
from fleetcron.policy import amend
from fleetcron.scheduler.tables import Tables
from fleetcron.store.claims import Claimed
from fleetcron.store.closing import release_downstream, release_following
from fleetcron.store.engine import Script
from fleetcron.store.history import Span
from fleetcron.store.rows import rows, texts
from fleetcron.store.upstreams import Around, upstream_facts
from fleetcron.store.written import Ok, Refused
from tests.store.engines import change
from tests.store.floor import Floor
from tests.worker.shop import fetcher

if TYPE_CHECKING:
    from tests.store.test_conformance import World

NOW = 1_800_000_000_000
MINUTE = 60_000
DAILY = CronEntry("0 0 * * *", "UTC", "skip", "both")

Check = Callable[["World"], Awaitable[None]]
CHECKS: dict[str, Check] = {}
_ids = count(1)


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


def job(name: str, *depends_on: str, tenant: str = "default") -> Definition:
    return Definition(name, (DAILY,), CommandTarget(("true",)), tenant=tenant, depends_on=depends_on)


class Jobs:
    """`b` depends on `a`. Instants are minutes after their creation."""

    def __init__(self, w: "World", a: str, b: str) -> None:
        self.w, self.a, self.b = w, a, b

    @classmethod
    async def made(cls, w: "World") -> "Jobs":
        made = [(await w.desk.create(each)).job for each in (job("a"), job("b", "a"))]
        assert made[0] is not None
        assert made[1] is not None
        return cls(w, made[0].job_id, made[1].job_id)

    async def sql(self, text: str) -> None:
        await change(self.w.store.engine, text)

    async def insert(self, table: str, **values: object) -> None:
        texts = ["NULL" if value is None else f"'{value}'" for value in values.values()]
        await self.sql(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(texts)})")

    async def run(self, job_id: str, at: int, state: str = "succeeded", kind: str = "tick") -> None:
        tick = NOW + at * MINUTE
        await self.insert(
            "runs", job_id=job_id, scheduled_for_ms=tick, run_after_ms=tick, created_ms=NOW, almanac=1, covers=1,
            revision=1, kind=kind, lane="live", state=state,
        )  # fmt: skip

    async def merge(self, at: int, into: int) -> None:
        """The run of `a` at one instant into the one at another."""
        where = f"job_id = '{self.a}' AND scheduled_for_ms ="
        other = f"SELECT run_id FROM runs WHERE {where} {NOW + into * MINUTE}"
        await self.sql(f"UPDATE runs SET state = 'merged', covered_by = ({other}) WHERE {where} {NOW + at * MINUTE}")

    async def line(self, job_id: str, first: int, last: int, answer: str, covered_by: int | None = None) -> None:
        await self.insert(
            "ledger", job_id=job_id, from_ms=NOW + first * MINUTE, to_ms=NOW + last * MINUTE, ticks=2, answer=answer,
            reason="misfire", covered_by_ms=None if covered_by is None else NOW + covered_by * MINUTE, revision=1,
            almanac=1, noted_ms=NOW,
        )  # fmt: skip

    async def gap(self, first: int, last: int, noticed_ms: int | None = NOW) -> None:
        await self.insert(
            "gaps", job_id=self.a, region="*", shard=0, from_ms=NOW + first * MINUTE, to_ms=NOW + last * MINUTE,
            cause="outage", revision=1, timing_id=1, almanac=1, noticed_ms=noticed_ms, trimmed=0,
        )  # fmt: skip

    async def facts(self, at: int, **fields: object) -> list[tuple[str | None, bool, bool]] | None:
        """What is known for the run of `b` at an instant. None: it is not asked."""
        run = queued_run(self.b, NOW + at * MINUTE, **fields)
        known = await self.w.store.engine.read(lambda: upstream_facts([run]))
        if run.run_id not in known:
            return None
        return [(each.answer, each.undecided, each.paused) for each in known[run.run_id]]

    async def answer(self, at: int) -> str | None:
        """The answer of the one upstream, decided and not paused."""
        known = await self.facts(at)
        assert known is not None
        [(answer, undecided, paused)] = known
        assert (undecided, paused) == (False, False)
        return answer


def queued_run(job_id: str, at_ms: int, **fields: object) -> Queued:
    run = Queued(
        next(_ids), job_id, "default", "default", "true", "live", "tick", 0, 0, at_ms, at_ms, None, "skip", None, 1,
        "true", True, 0, 0, 0, 0, False,
    )  # fmt: skip
    return run._replace(**fields)  # type: ignore[arg-type]


@check
async def the_latest_tick_in_the_period_counts(w: "World") -> None:
    """S1-9, S1-19: (previous tick, own tick]. Manual runs neither end a period nor answer for one."""
    jobs = await Jobs.made(w)
    await jobs.run(jobs.b, 10)
    await jobs.run(jobs.a, 10, "dead")  # belongs to the period before
    assert await jobs.answer(20) is None
    await jobs.run(jobs.a, 12, "dead")
    assert await jobs.answer(20) == "dead"
    await jobs.run(jobs.a, 15, "running", kind="manual")
    await jobs.run(jobs.b, 14, kind="manual")
    assert await jobs.answer(20) == "dead"
    await jobs.run(jobs.a, 20)
    await jobs.run(jobs.a, 21, "planned")  # belongs to the next one
    assert await jobs.answer(20) == "succeeded"
    assert await jobs.answer(19) == "dead"
    assert await jobs.answer(10) == "dead"
    assert await jobs.answer(25) == "planned"  # without a run at 20, b's previous tick is still 10


@check
async def the_first_period_begins_with_the_job(w: "World") -> None:
    """S1-19: also when ticks from before its creation were backfilled."""
    jobs = await Jobs.made(w)
    await jobs.run(jobs.a, 0, "dead")
    assert await jobs.answer(5) is None
    await jobs.run(jobs.b, -60, kind="backfill")
    assert await jobs.answer(5) is None
    await jobs.run(jobs.a, -55, "cancelled", kind="backfill")
    assert await jobs.answer(-50) == "cancelled"  # a backfill after another one
    assert await jobs.answer(-70) is None  # the first one: nobody knows its period
    await jobs.run(jobs.a, 1)
    assert await jobs.answer(5) == "succeeded"


@check
async def the_previous_tick_may_be_in_the_ledger(w: "World") -> None:
    jobs = await Jobs.made(w)
    await jobs.run(jobs.a, 8, "dead")
    await jobs.run(jobs.b, 5)
    assert await jobs.answer(20) == "dead"
    await jobs.line(jobs.b, 6, 9, "skipped")
    assert await jobs.answer(20) is None
    await jobs.run(jobs.a, 12, "dead")
    assert await jobs.answer(20) == "dead"
    await jobs.run(jobs.b, 13)
    assert await jobs.answer(20) is None
    assert await jobs.answer(9) == "dead"  # a range that does not end before the tick counts with its first


@check
async def the_ledger_answers_for_an_upstream(w: "World") -> None:
    jobs = await Jobs.made(w)
    await jobs.run(jobs.b, 10)
    await jobs.line(jobs.a, 5, 10, "missed")
    assert await jobs.answer(20) is None
    await jobs.line(jobs.a, 11, 12, "missed")
    assert await jobs.answer(20) == await jobs.answer(11) == "missed"
    await jobs.run(jobs.a, 13)
    assert await jobs.answer(20) == "succeeded"
    await jobs.line(jobs.a, 14, 30, "cancelled")  # it goes on after the period
    assert await jobs.answer(20) == "cancelled"


@check
async def covered_and_merged_ticks_are_followed(w: "World") -> None:
    """The run that stands for a tick may be later than the period; merged ones may be merged again."""
    jobs = await Jobs.made(w)
    await jobs.line(jobs.a, 5, 12, "skipped", covered_by=30)
    assert await jobs.answer(10) == "skipped"  # nobody stands for it
    await jobs.run(jobs.a, 30, "planned")
    assert await jobs.answer(10) == "planned"
    await jobs.run(jobs.a, 31, "planned")
    await jobs.merge(30, 31)
    assert await jobs.answer(10) == "planned"
    await jobs.run(jobs.a, 32)
    await jobs.merge(31, 32)
    assert await jobs.answer(10) == "succeeded"
    assert await jobs.answer(30) == await jobs.answer(31) == "succeeded"
    await jobs.sql(f"UPDATE runs SET covered_by = NULL WHERE scheduled_for_ms = {NOW + 31 * MINUTE}")
    assert await jobs.answer(30) == "merged"


@check
async def what_is_not_decided_is_said(w: "World") -> None:
    """S1-20: a tick that nobody has planned yet, or a gap after the latest tick. Gaps before it do not matter."""
    jobs = await Jobs.made(w)
    await jobs.run(jobs.a, 10)
    due = "UPDATE cursors SET next_due_ms = {} WHERE job_id = '" + jobs.a + "'"
    await jobs.sql(due.format(NOW + 20 * MINUTE))
    assert await jobs.facts(19) == [("succeeded", False, False)]
    assert await jobs.facts(20) == [("succeeded", True, False)]
    await jobs.sql(due.format("NULL"))  # it has no ticks any more
    assert await jobs.facts(20) == [("succeeded", False, False)]
    await jobs.gap(5, 10)
    await jobs.gap(20, 30)
    await jobs.gap(12, 15, noticed_ms=None)  # the job was paused then: nobody decides it for now
    assert await jobs.facts(20) == [("succeeded", False, False)]
    assert await jobs.facts(9) == [(None, True, False)]
    await jobs.line(jobs.a, 6, 9, "missed")
    assert await jobs.facts(9) == [("missed", True, False)]
    await jobs.sql(f"UPDATE gaps SET to_ms = {NOW + 9 * MINUTE} WHERE to_ms = {NOW + 10 * MINUTE}")
    assert await jobs.facts(9) == [("missed", False, False)]
    assert await jobs.facts(21) == [("succeeded", True, False)]
    await jobs.run(jobs.b, 15)
    await jobs.run(jobs.b, 30)
    assert await jobs.facts(29) == [(None, True, False)]
    assert await jobs.facts(31) == [(None, False, False)]


@check
async def a_pause_is_said(w: "World") -> None:
    jobs = await Jobs.made(w)
    await w.clock.set(NOW + 10 * MINUTE)
    await w.desk.pause("default", "a")
    assert await jobs.facts(10) == [(None, False, False)]  # it was paused after all its ticks of the period
    assert await jobs.facts(11) == [(None, False, True)]
    await w.desk.resume("default", "a")
    await jobs.sql(f"UPDATE jobs SET state = 'cancelled' WHERE job_id = '{jobs.a}'")  # the desk would refuse it
    assert await jobs.facts(11) == [(None, False, False)]


@check
async def the_ticks_of_a_pause_count_once_it_is_over(w: "World") -> None:
    """While it lasts nobody knows of them: what it did before is the answer. Then they are waited for until it is
    decided what becomes of them."""
    jobs = await Jobs.made(w)
    await w.desk.edit(replace(job("a"), schedule=(replace(DAILY, cron="* * * * *"),)))
    await jobs.run(jobs.a, 10)
    await w.clock.set(NOW + 10 * MINUTE)
    await w.desk.pause("default", "a", on_resume="all")
    assert await jobs.facts(15) == [("succeeded", False, True)]
    await w.clock.set(NOW + 20 * MINUTE)
    await w.desk.resume("default", "a")
    assert await jobs.facts(15) == [("succeeded", True, False)]


@check
async def only_runs_that_may_have_to_wait_are_asked(w: "World") -> None:
    """Manual runs, replays and further attempts do not wait."""
    jobs = await Jobs.made(w)
    assert await jobs.facts(10) == await jobs.facts(10, kind="backfill", lane="catchup") == [(None, False, False)]
    for others in ({"kind": "manual"}, {"round": 1}, {"attempt": 1}, {"leased": True}, {"depends": False}):
        assert await jobs.facts(10, **others) is None
    assert await w.store.engine.read(lambda: upstream_facts([])) == {}
    await w.desk.create(job("a", tenant="other"))
    await jobs.sql(f"UPDATE jobs SET deleted_ms = 1 WHERE job_id = '{jobs.a}'")
    assert await jobs.facts(10) == []  # not the job of another tenant, and no job at all: satisfied


@check
async def many_runs_are_asked_at_once(w: "World") -> None:
    jobs = await Jobs.made(w)
    await w.desk.create(job("c"))
    await w.desk.edit(replace(job("b", "c", "a"), on_upstream_failure="run"))
    await jobs.run(jobs.a, 5, "dead")
    runs = [queued_run(jobs.b, NOW + at * MINUTE) for at in (4, 6)]
    known = await w.store.engine.read(lambda: upstream_facts(runs))
    assert [[(u.job_id == jobs.a, u.name, u.on_failure, u.answer) for u in known[run.run_id]] for run in runs] == [
        [(True, "a", "run", None), (False, "c", "run", None)],
        [(True, "a", "run", "dead"), (False, "c", "run", None)],
    ]


@check
async def a_claim_waits_for_upstream_jobs_and_their_ends_let_go(w: "World") -> None:
    """S1-19, S1-20: all of it, from the tick to the claim: an end lets the next one go at once, down the chain."""
    floor = Floor(w.store, w.clock, w.desk, w.held)
    await floor.define("a")
    await floor.define("b", depends_on=("a",))
    await floor.define("c", depends_on=("a", "b"), on_upstream_failure="run")
    await floor.join("n1")

    async def claimed() -> list[str]:
        held.update({run.name: run for run in await floor.claim("n1")})
        return sorted(held)

    held: dict[str, Claimed] = {}
    await floor.next_minute()
    assert await claimed() == ["a"]
    assert await claimed() == ["a"]
    await floor.succeed("n1", held.pop("a"))
    assert await claimed() == ["b"]
    await floor.succeed("n1", held.pop("b"))
    assert await claimed() == ["c"]
    await floor.succeed("n1", held.pop("c"))
    await floor.next_minute()
    for _ in range(2):
        assert await claimed() == ["a"]
        await floor.fail("n1", held.pop("a"))  # the first time it is tried again, and b goes on waiting
        await w.clock.advance(30_000)
        await floor.queue()
    assert await claimed() == ["c"]  # b is skipped, and c runs whatever they became
    last = {line.name: line.run for line in (await w.store.history.runs(Span(), limit=3))}
    assert {name: run.state for name, run in last.items()} == {"a": "dead", "b": "skipped", "c": "running"}
    assert last["b"].reason == "upstream a is dead"


@check
async def those_that_wait_for_a_job_are_counted(w: "World") -> None:
    """As far as it matters; and who is among the first of them is told."""
    jobs = await Jobs.made(w)
    await jobs.run(jobs.a, 3, "running")
    ticks = [1, 2, 2, 3, 5]
    await park(w, jobs.a, [NOW + at * MINUTE for at in ticks])
    await park(w, jobs.b, [NOW, NOW])

    def asked(most: int, front: int) -> Script[list[tuple[int, int | None]]]:
        keys = [jobs.a, jobs.b, "nobody"]
        found = yield "queue_crowds", {"keys": texts(keys), "most": most, "front": front}
        known = {row["key"]: (row["waiting"], row["front_ms"]) for row in found}
        return [known[key] for key in keys]

    read = w.store.engine.read
    assert await read(lambda: asked(9, 3)) == [(5, NOW + 3 * MINUTE), (2, None), (0, None)]
    assert await read(lambda: asked(3, 0)) == [(3, NOW + MINUTE), (2, NOW), (0, None)]
    run = queued_run(jobs.b, NOW + 3 * MINUTE)
    [known] = (await read(lambda: upstream_facts([run])))[run.run_id]
    assert (known.answer, known.waiting, known.in_front) == ("running", 5, True)
    await park(w, jobs.a, [NOW + 4 * MINUTE] * FRONT)
    runs = [queued_run(jobs.b, NOW + at * MINUTE) for at in (4, 5)]
    found = await read(lambda: upstream_facts(runs))
    assert [found[run.run_id][0].in_front for run in runs] == [True, False]


@check
async def an_answer_lets_the_first_go_of_many(w: "World") -> None:
    """All if they are few; otherwise the first ones, and the first from its tick on. Who gets through is followed."""
    ticks = list(range(100))
    for key, many in (("few", ticks[:60]), ("many", ticks)):
        await park(w, key, [NOW + at for at in many])

    async def let_go(part: Callable[..., Script[set[str]]], *asked: Any) -> list[int]:
        before = await parked(w)
        assert await w.store.engine.write(lambda: part(*asked)) == Ok({"default"})
        return sorted(tick - NOW for _, tick in before - await parked(w))

    assert await let_go(release_downstream, [("few", NOW + 50), ("nobody", NOW)]) == ticks[:60]
    assert await let_go(release_downstream, [("many", NOW + 50)]) == [0, 1, 2, 3, 50, 51, 52, 53]
    assert await let_go(release_following, [("many", NOW + 50)], "default") == [54, 55]
    assert await let_go(release_following, [("many", NOW + 2)] * 2, "default") == [4, 5, 6, 7]
    assert await let_go(release_following, [("many", NOW), ("many", NOW + 2)], "default") == [8, 9]  # for both of them
    assert await w.store.engine.write(lambda: release_following([("many", NOW)], "other")) == Ok(set())
    assert await w.store.engine.write(lambda: release_downstream([])) == Ok(set())


async def park(w: "World", key: str, ticks: Sequence[int]) -> None:
    """Runs in the queue that wait for an upstream job."""
    values = ", ".join(
        f"({next(_ids) + 10_000}, '{uuid4()}', 'default', 'default', 'x', 'live', 'tick', 0, 0, {at}, {at}, 'allow', 1,"
        f" 'x', 1, 0, 0, 0, 0, 0, 'upstream', '{key}', {at}, {NOW + MINUTE})"
        for at in ticks
    )
    columns = (
        "run_id, job_id, tenant, pool, type, lane, kind, priority, rank, due_ms, scheduled_for_ms, overlap,"
        " max_running, handler, depends, attempt, failures, losses, round, leased, gate, key, since_ms, look_ms"
    )
    await change(w.store.engine, f"INSERT INTO queue ({columns}) VALUES {values}")
    share = {"pool": "default", "lane": "live", "priority": 0, "tenant": "", "rank": 0}

    def script() -> Script[None]:
        yield "shares_write", {"rows": rows([share])}

    await w.store.engine.write(script)


async def parked(w: "World") -> set[tuple[str, int]]:
    """Key and tick of those that wait."""
    [found] = await fetcher(w.store.engine)("SELECT key, scheduled_for_ms FROM queue WHERE gate IS NOT NULL")
    return {(row["key"], row["scheduled_for_ms"]) for row in found}


@check
async def the_dependencies_around_a_job_are_read(w: "World") -> None:
    """S1-9: all jobs upstream, also where there is a cycle; and those downstream that can still run."""
    for each in (job("a"), job("b", "a"), job("c", "b", "a"), job("d", "a"), job("a", tenant="other"), job("e")):
        await w.desk.create(each)
    jobs = w.store.jobs
    wanted = {"a": (), "b": ("a",), "c": ("b", "a")}
    found = await jobs.around([("default", "c"), ("default", "nobody")], [("default", "a"), ("other", "a")])
    assert found.edges == {("default", name): needs for name, needs in wanted.items()}
    assert found.dependants == {("default", "a"): ("b", "c", "d"), ("other", "a"): ()}
    await w.desk.cancel("default", "d")
    await w.desk.edit(job("e", "d"))
    await w.desk.delete("default", "c")
    found = await jobs.around([("default", "e")], [("default", "a"), ("default", "d")])
    assert found.edges == {("default", "e"): ("d",), ("default", "d"): ()}  # a cancelled job depends on nothing
    assert found.dependants == {("default", "a"): ("b",), ("default", "d"): ("e",)}
    set_needs = "UPDATE jobs SET depends = 1, definition = '{}' WHERE name = 'a'"
    text = job("a", "b").body().replace("'", "''")
    await change(w.store.engine, set_needs.format(text))
    assert set((await jobs.around([("default", "a")], [])).edges) == {("default", "a"), ("default", "b")}


@check
async def amend_is_refused_if_the_dependencies_have_changed(w: "World") -> None:
    """S1-9: what was decided about a picture of the dependencies is written only as long as it is true."""
    for each in (job("a"), job("b"), job("c")):
        await w.desk.create(each)
    seen = await w.store.jobs.around([("default", "c"), ("default", "b")], [])
    found = await w.store.jobs.find([("default", "b"), ("default", "c")])
    tables = Tables(w.store.almanac)
    made = []
    for before, after in (("c", job("c", "b")), ("b", job("b", "a"))):
        standing = found.standings["default", before]
        timetable, _ = await tables.timetable(standing.timing, 1)
        made.append(amend.edit(standing, after, timetable, standing.timing, timetable, NOW, "ann", strict=True))
    stale = replace(seen, edges={**seen.edges, ("default", "b"): ("a",)})
    no = Refused("other changes have changed what these jobs depend on")
    assert await w.store.jobs.amend([made[0]], epoch=1, around=stale) == no
    assert await w.store.jobs.amend([made[0]], epoch=1, around=replace(seen, ends=(("default", "a"),))) == no
    await w.desk.pause("default", "b")  # b moves: then c is not written alone
    apart = Refused("some of the jobs have moved, and others depend on them")
    assert await w.store.jobs.amend(made, epoch=1, around=seen) == apart
    assert await w.store.jobs.amend([made[1]], epoch=1, around=seen) == Ok(frozenset())
    assert await w.store.jobs.amend([made[0]], epoch=1, around=seen) == Ok(frozenset({made[0].after.job.job_id}))
    assert await w.store.jobs.around([], [("default", "b")]) == Around(
        (), (("default", "b"),), {}, {("default", "b"): ("c",)}
    )
    with pytest.raises(RefusedError, match="c depends on it"):
        await w.desk.delete("default", "b")
