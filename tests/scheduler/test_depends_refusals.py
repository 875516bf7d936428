"""What the desk refuses because of dependencies: cycles, upstream jobs that do not exist, deletes of jobs in use."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import permutations
from typing import Any

import pytest

from fleetcron.applying import apply as applying
from fleetcron.applying.rehearsal import RehearsalStore
from fleetcron.errors import RefusedError
from fleetcron.model.amendment import Amendment
from fleetcron.model.definition import Definition
from fleetcron.model.reading import Documents
from fleetcron.model.rules import CronEntry, OnceEntry
from fleetcron.model.target import CommandTarget
from fleetcron.scheduler import desk as desk_module
from fleetcron.scheduler.desk import Applied, Desk
from fleetcron.scheduler.sync import sync
from fleetcron.store.engine import Engine
from fleetcron.store.jobs import Jobs
from fleetcron.store.store import Store
from fleetcron.store.written import Written
from tests.store.engines import hand_cranked

NOON = 1_781_092_800_000
SHARDS = 2
DAILY = CronEntry("0 0 * * *", "UTC", "skip", "both")


def job(name: str, *depends_on: str, tenant: str = "acme", **fields: Any) -> Definition:
    return Definition(name, (DAILY,), CommandTarget(("true",)), tenant=tenant, depends_on=depends_on, **fields)


def desk_of(store: Store) -> Desk:
    return Desk(store, actor="ann", shards=SHARDS)


def on(url: str, scenario: Callable[[Store], Awaitable[None]]) -> None:
    async def live() -> None:
        async with hand_cranked(url, NOON) as (engine, _):
            store = Store(engine)
            await store.shards.fix(SHARDS)
            await scenario(store)

    asyncio.run(live())


async def stored(store: Store, *names: str) -> dict[str, tuple[str, ...]]:
    """What each of these jobs depends on, if it exists."""
    found = await store.jobs.find([("acme", name) for name in names])
    return {name: each.job.definition.depends_on for (_, name), each in found.standings.items()}


def told(applied: Sequence[Applied]) -> dict[str, str]:
    return {each.name: each.done for each in applied}


def test_an_upstream_that_does_not_exist_is_refused() -> None:
    """S1-9: by every way in, and nothing is written."""

    async def scenario(store: Store) -> None:
        desk = desk_of(store)
        await desk.create(job("a", tenant="other"))
        with pytest.raises(RefusedError, match="it depends on a, which does not exist; create it first"):
            await desk.create(job("b", "a"))
        await desk.create(job("b"))
        with pytest.raises(RefusedError, match="it depends on a, which does not exist"):
            await desk.edit(job("b", "a"))
        [applied] = await desk.apply([job("b", "a")])
        assert (applied.done, applied.reason) == (
            "refused",
            "it depends on a, which does not exist; create it first, or in the same file",
        )
        assert await stored(store, "a", "b") == {"b": ()}
        await desk.create(job("a"))
        assert (await desk.edit(job("b", "a"))).done == "changed"

    on(":memory:", scenario)


def test_a_cycle_is_refused_and_named() -> None:
    """S1-9: a → b → c → a would wait for ever."""

    async def scenario(store: Store) -> None:
        desk = desk_of(store)
        assert told(await desk.apply([job("c"), job("b", "c"), job("a", "b")])) == dict.fromkeys("cba", "created")
        with pytest.raises(RefusedError, match="would close a cycle: c → a → b → c; leave one of them out"):
            await desk.edit(job("c", "a"))
        assert await stored(store, "a", "b", "c") == {"a": ("b",), "b": ("c",), "c": ()}
        await desk.cancel("acme", "a")  # it never runs again, so it closes nothing
        assert (await desk.edit(job("c", "a"))).done == "changed"

    on(":memory:", scenario)


@pytest.mark.parametrize("batch", [1, 2, 500])
@pytest.mark.parametrize("order", list(permutations("abcx")))
def test_the_order_in_a_file_does_not_matter(order: Sequence[str], batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upstream jobs come first, whatever the file says and however many are written at a time."""
    monkeypatch.setattr(desk_module, "BATCH", batch)
    jobs = {"a": job("a"), "b": job("b", "a"), "c": job("c", "b", "a"), "x": job("x", "nobody")}

    async def scenario(store: Store) -> None:
        applied = await desk_of(store).apply([jobs[name] for name in order])
        assert [each.name for each in applied] == list(order)
        assert told(applied) == {"a": "created", "b": "created", "c": "created", "x": "refused"}

    on(":memory:", scenario)


@pytest.mark.parametrize("batch", [1, 500])
@pytest.mark.parametrize("order", list(permutations("abc")))
def test_a_cycle_within_a_file_is_refused(order: Sequence[str], batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it; also what would depend on it. Jobs beside it are written."""
    monkeypatch.setattr(desk_module, "BATCH", batch)
    jobs = {"a": job("a", "c"), "b": job("b", "a"), "c": job("c", "b")}

    async def scenario(store: Store) -> None:
        applied = await desk_of(store).apply([job("d", "a"), *(jobs[name] for name in order), job("e")])
        assert told(applied) == {**dict.fromkeys("abcd", "refused"), "e": "created"}
        reasons = {each.name: each.reason or "" for each in applied}
        if batch > 1:  # one by one, the first of them depends on a job that does not exist
            assert "a → c → b → a" in reasons["a"]
            assert reasons["d"] == "it depends on a, which was refused; mend that one first"

    on(":memory:", scenario)


@pytest.mark.parametrize("turned", [[job("a"), job("b", "a")], [job("b", "a"), job("a")]])
def test_a_dependency_can_be_turned_round(turned: Sequence[Definition]) -> None:
    async def scenario(store: Store) -> None:
        desk = desk_of(store)
        await desk.apply([job("a", "b"), job("b")])
        assert told(await desk.apply(turned)) == {"a": "changed", "b": "changed"}
        assert told(await desk.apply(turned)) == {"a": "unchanged", "b": "unchanged"}

    on(":memory:", scenario)


def test_who_depends_on_a_job_that_is_refused_for_another_reason_is_refused() -> None:
    async def scenario(store: Store) -> None:
        never = Definition("a", (OnceEntry("2026-01-01T00:00:00Z"),), CommandTarget(("true",)), tenant="acme")
        applied = await desk_of(store).apply([job("b", "a"), never], strict=True)
        assert told(applied) == {"b": "refused", "a": "refused"}

    on(":memory:", scenario)


def test_a_job_that_others_need_is_not_deleted() -> None:
    """S1-9: the refusal names them. Cancelled and deleted jobs need nothing."""

    async def scenario(store: Store) -> None:
        desk = desk_of(store)
        await desk.apply([job("a"), job("b", "a"), job("c", "a"), job("x", "b")])
        with pytest.raises(RefusedError, match=r"^b, c depend on it; change or delete what depends on it first$"):
            await desk.delete("acme", "a")
        await desk.edit(job("x", "c"))
        await desk.cancel("acme", "b")
        with pytest.raises(RefusedError, match=r"^c depends on it; "):
            await desk.delete("acme", "a")
        await desk.edit(job("c", "b"))
        assert (await desk.delete("acme", "a")).done == "deleted"
        await desk.apply([job(f"d{number}", "c") for number in range(7)])
        with pytest.raises(RefusedError, match=r"^d0, d1, d2, d3, d4 and others depend on it; "):
            await desk.delete("acme", "c")

    on(":memory:", scenario)


def test_a_job_that_others_need_is_not_cancelled_either() -> None:
    """It would have no ticks any more, and so count as satisfied: those who need it would run without it."""

    async def scenario(store: Store) -> None:
        desk = desk_of(store)
        await desk.apply([job("a"), job("b", "a")])
        with pytest.raises(RefusedError, match=r"^b depends on it; change or delete what depends on it first$"):
            await desk.cancel("acme", "a")
        assert (await desk.pause("acme", "a")).done == "paused"  # that says what becomes of them
        await desk.cancel("acme", "b")
        assert (await desk.cancel("acme", "a")).done == "cancelled"

    on(":memory:", scenario)


@pytest.mark.parametrize("batch", [1, 3, 500])
def test_a_dry_run_answers_as_the_real_one(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rehearsal takes back every batch, and still lets later ones depend on it."""
    monkeypatch.setattr(applying, "BATCH", batch)
    jobs = [job("d", "c", "a"), job("c", "b"), job("b", "a"), job("a"), job("y", "x"), job("x", "nobody")]
    documents = Documents(jobs)

    async def scenario(store: Store) -> None:
        for each, kept in ((RehearsalStore(store), []), (store, ["a", "b", "c", "d"])):
            report = await applying.apply(each, documents, actor="ann", shards=SHARDS)
            applied = [done.applied for done in report.jobs]
            assert [each.name for each in applied] == ["d", "c", "b", "a", "y", "x"]
            assert told(applied) == {**dict.fromkeys("dcba", "created"), "y": "refused", "x": "refused"}
            assert sorted(await stored(store, *"abcdxy")) == kept

    on(":memory:", scenario)


def test_jobs_that_vanish_from_a_program_go_dependants_first() -> None:
    async def scenario(store: Store) -> None:
        needs = {"a": (), "b": ("a",), "c": ("b",), "d": ()}
        jobs = [job(name, *some, managed_by="app:shop") for name, some in needs.items()]
        await sync(store, jobs, managed_by="app:shop", shards=SHARDS)
        gone = await sync(store, jobs[3:], managed_by="app:shop", prune="delete", shards=SHARDS)
        assert told(gone) == {"d": "unchanged", **dict.fromkeys("cba", "deleted")}

    on(":memory:", scenario)


# -- two at a time


class MeetingJobs(Jobs):
    """Everybody has decided before anybody writes."""

    def __init__(self, engine: Engine, everybody: asyncio.Barrier) -> None:
        super().__init__(engine)
        self._everybody = everybody
        self._met = False

    async def amend(self, amendments: Sequence[Amendment], **given: Any) -> Written[frozenset[str]]:
        if not self._met:
            self._met = True
            await self._everybody.wait()
        return await super().amend(amendments, **given)


class MeetingStore(Store):
    def __init__(self, store: Store, everybody: asyncio.Barrier) -> None:
        super().__init__(store.engine)
        self.jobs = MeetingJobs(store.engine, everybody)


async def at_once(store: Store, *wishes: Callable[[Desk], Awaitable[Applied]]) -> list[str]:
    everybody = asyncio.Barrier(len(wishes))

    async def answer(wish: Callable[[Desk], Awaitable[Applied]]) -> str:
        try:
            return (await wish(desk_of(MeetingStore(store, everybody)))).done
        except RefusedError as error:
            return str(error)

    return list(await asyncio.gather(*map(answer, wishes)))


@pytest.fixture(params=["sqlite_memory", "postgres18"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


def test_edits_that_close_a_cycle_together(url: str) -> None:
    """S1-9: each is right by itself; they touch no job in common, and one of them is refused."""

    async def scenario(store: Store) -> None:
        for n in range(10):
            a, b, c, d = (f"{letter}{n}" for letter in "abcd")
            await desk_of(store).apply([job(a), job(b), job(c, b), job(d, a)])
            done = await at_once(store, lambda desk: desk.edit(job(a, c)), lambda desk: desk.edit(job(b, d)))  # noqa: B023
            assert "changed" in done
            [refused] = [each for each in done if each != "changed"]
            assert "would close a cycle" in refused
            edges = await stored(store, a, b, c, d)
            assert sorted([edges[a], edges[b]]) in ([(), (c,)], [(), (d,)])

    on(url, scenario)


def test_a_cancel_while_somebody_comes_to_depend_on_it(url: str) -> None:
    async def scenario(store: Store) -> None:
        refused = "{} depends on it; change or delete what depends on it first"
        for n in range(10):
            a, b = f"a{n}", f"b{n}"
            await desk_of(store).create(job(a))
            done = await at_once(store, lambda desk: desk.cancel("acme", a), lambda desk: desk.create(job(b, a)))  # noqa: B023
            assert done in (["cancelled", "created"], [refused.format(b), "created"])

    on(url, scenario)


def test_a_delete_while_somebody_comes_to_depend_on_it(url: str) -> None:
    async def scenario(store: Store) -> None:
        for n in range(10):
            a, b = f"a{n}", f"b{n}"
            await desk_of(store).create(job(a))
            done = await at_once(store, lambda desk: desk.delete("acme", a), lambda desk: desk.create(job(b, a)))  # noqa: B023
            assert done in (
                ["deleted", f"it depends on {a}, which does not exist; create it first, or in the same file"],
                [f"{b} depends on it; change or delete what depends on it first", "created"],
            )

    on(url, scenario)
