"""The jobs of an app in the store: created, edited, put to rest and woken, and never taken from somebody else."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fleetcron import Fleetcron
from fleetcron.model.definition import Definition
from fleetcron.model.job import Job
from fleetcron.model.rules import EveryEntry
from fleetcron.model.target import CommandTarget
from fleetcron.scheduler import sync
from fleetcron.scheduler.desk import Applied, Desk
from fleetcron.store.job_pages import JobFilter
from fleetcron.store.store import Store
from tests.store.engines import DatabaseClock, hand_cranked

NOW = 1_800_000_000_000
HOUR = 3_600_000


def report() -> None:
    pass


def load() -> None:
    pass


def app(*functions: Callable[..., Any], name: str = "shop", **fields: Any) -> Fleetcron:
    made = Fleetcron(name=name)
    for function in functions:
        made.job(**{"every": "1h", **fields})(function)
    return made


@dataclass
class World:
    store: Store
    clock: DatabaseClock

    @property
    def ann(self) -> Desk:
        """A person."""
        return Desk(self.store, actor="ann", shards=4)

    async def sync(self, given: Fleetcron, **settings: Any) -> list[tuple[str, str]]:
        await self.clock.advance(1000)
        return names(await given.sync(self.store, shards=4, **settings))

    async def jobs(self) -> dict[str, str]:
        return {line.job.definition.name: line.job.state for line in await self.store.jobs.list(JobFilter(), 100)}

    async def job(self, name: str) -> Job:
        return (await self.store.jobs.named("default", name))[0]

    async def history(self, name: str) -> list[tuple[str, str]]:
        job = await self.job(name)
        return [(each.action, each.actor) for each in reversed(await self.store.jobs.revisions(job.job_id, 100))]


def names(applied: list[Applied]) -> list[tuple[str, str]]:
    return [(each.name, each.done) for each in applied]


def handmade(name: str, managed_by: str | None = None) -> Definition:
    return Definition(name, (EveryEntry(HOUR),), CommandTarget(("true",)), managed_by=managed_by)


@pytest.fixture(params=["sqlite_memory", "postgres18"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


@asynccontextmanager
async def world(url: str) -> AsyncIterator[World]:
    async with hand_cranked(url, NOW) as (engine, clock):
        yield World(Store(engine), clock)


def play(url: str, story: Callable[[World], Awaitable[None]]) -> None:
    async def scenario() -> None:
        async with world(url) as w:
            await story(w)

    asyncio.run(scenario())


def test_created_edited_and_left_alone(url: str) -> None:
    async def story(w: World) -> None:
        assert await w.sync(app(report, load)) == [("report", "created"), ("load", "created")]
        assert (await w.job("report")).definition.managed_by == "app:shop"
        assert await w.sync(app(report, load)) == [("report", "unchanged"), ("load", "unchanged")]
        assert await w.sync(app(report, load, timeout="5m"), by="ann") == [("report", "changed"), ("load", "changed")]
        assert await w.history("report") == [("create", "app:shop"), ("edit", "app:shop (ann)")]

    play(url, story)


def test_what_vanished_is_paused_and_woken_when_it_comes_back(url: str) -> None:
    async def story(w: World) -> None:
        await w.sync(app(report, load))
        assert await w.sync(app(load)) == [("load", "unchanged"), ("report", "paused")]
        assert await w.sync(app(load)) == [("load", "unchanged")]
        assert await w.jobs() == {"report": "paused", "load": "active"}
        assert (await w.job("report")).on_resume == "skip"  # nobody wanted these ticks
        await w.clock.advance(5 * HOUR)
        assert await w.sync(app(report, load)) == [("report", "resumed"), ("load", "unchanged")]
        assert await w.jobs() == {"report": "active", "load": "active"}
        assert await w.history("report") == [("create", "app:shop"), ("pause", "app:shop"), ("resume", "app:shop")]

    play(url, story)


def test_it_comes_back_as_the_code_has_it_now(url: str) -> None:
    async def story(w: World) -> None:
        await w.sync(app(report))
        await w.sync(app(), by="ann")
        assert await w.sync(app(report, timeout="5m")) == [("report", "resumed")]
        assert (await w.job("report")).definition.timeout_ms == 300_000
        assert [action for action, _ in await w.history("report")] == ["create", "pause", "edit", "resume"]

    play(url, story)


def test_what_a_person_paused_stays_paused(url: str) -> None:
    async def story(w: World) -> None:
        await w.sync(app(report, load))
        await w.ann.pause("default", "report")  # while it was in the code
        await w.sync(app())
        await w.clock.advance(1)
        await w.ann.pause("default", "load", "all")  # when it had gone
        assert await w.sync(app(report, load)) == [("report", "unchanged"), ("load", "unchanged")]
        assert await w.sync(app(report, load, timeout="5m")) == [("report", "changed"), ("load", "changed")]
        assert await w.jobs() == {"report": "paused", "load": "paused"}
        await w.ann.resume("default", "load")
        await w.sync(app(report, timeout="5m"))
        assert await w.sync(app(report, load)) == [("report", "changed"), ("load", "resumed")]

    play(url, story)


def test_a_person_who_pauses_it_just_before_it_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(w: World) -> None:
        await w.sync(app(report))
        await w.sync(app())
        read = w.store.jobs.revisions

        async def read_and_be_too_late(*given: Any) -> Any:
            found = await read(*given)
            await w.ann.pause("default", "report", "all")
            return found

        monkeypatch.setattr(w.store.jobs, "revisions", read_and_be_too_late)
        assert await w.sync(app(report)) == [("report", "unchanged")]
        assert await w.jobs() == {"report": "paused"}

    play(":memory:", story)


def test_an_app_of_a_longer_name_is_another_app(url: str) -> None:
    async def story(w: World) -> None:
        await w.sync(app(report, name="shop"))
        await Desk(w.store, actor="app:shop2", shards=4).pause("default", "report")
        assert await w.sync(app(report, name="shop")) == [("report", "unchanged")]
        assert await w.sync(app(load, name="shop2")) == [("load", "created")]
        assert await w.jobs() == {"report": "paused", "load": "active"}

    play(url, story)


def test_delete_and_keep(url: str) -> None:
    async def story(w: World) -> None:
        await w.sync(app(report, load))
        assert await w.sync(app(load), prune="keep") == [("load", "unchanged")]
        assert await w.jobs() == {"report": "active", "load": "active"}
        assert await w.sync(app(load), prune="delete") == [("load", "unchanged"), ("report", "deleted")]
        assert await w.jobs() == {"load": "active"}
        assert await w.sync(app(load, report)) == [("load", "unchanged"), ("report", "created")]

    play(url, story)


def test_jobs_that_depend_on_each_other_go_together(url: str) -> None:
    async def story(w: World) -> None:
        shop = Fleetcron(name="shop", prune="delete")
        shop.job(every="1h", name="a-first")(load)
        shop.job(every="1h", name="b-second", depends_on=["a-first"])(report)
        shop.job(every="1h", name="c-kept")(report)
        await w.sync(shop)
        await w.ann.create(replace(handmade("anns"), depends_on=("c-kept",)))
        gone = await w.sync(Fleetcron(name="shop", prune="delete"))
        assert sorted(gone) == [("a-first", "deleted"), ("b-second", "deleted"), ("c-kept", "refused")]
        assert await w.jobs() == {"anns": "active", "c-kept": "active"}

    play(url, story)


def test_what_has_ended_is_left_alone(url: str) -> None:
    async def story(w: World) -> None:
        await w.sync(app(report, load))
        await w.ann.cancel("default", "report")
        assert await w.sync(app(load)) == [("load", "unchanged")]
        assert await w.sync(app(load, report)) == [("load", "unchanged"), ("report", "unchanged")]
        [_, (name, done)] = await w.sync(app(load, report, timeout="5m"))
        assert (name, done) == ("report", "refused")
        assert (await w.job("report")).state == "cancelled"

    play(url, story)


@pytest.mark.parametrize("owner", [None, "file:jobs.yaml", "app:books", "app:shopping"])
def test_what_belongs_to_somebody_else_is_refused(owner: str | None) -> None:
    async def story(w: World) -> None:
        await w.ann.create(handmade("report", owner))
        [taken, made] = await app(report, load).sync(w.store, shards=4)
        assert (taken.done, made.done) == ("refused", "created")
        said = f"{owner} manages it" if owner else "it was made by hand, or comes from a file"
        assert taken.reason is not None
        assert f"there is another job of this name ({said}), and app:shop does not take it over" in taken.reason
        assert "fleetcron jobs delete default/report" in taken.reason
        assert (await w.job("report")).definition == handmade("report", owner)
        assert await w.sync(app(), prune="delete") == [("load", "deleted")]
        assert await w.jobs() == {"report": "active"}

    play(":memory:", story)


def test_two_apps_that_want_one_name_at_once(url: str) -> None:
    """Both find it free; whoever writes second must not take it over."""

    async def story(w: World) -> None:
        both = [app(report, name=name, timeout=timeout) for name, timeout in (("one", "1m"), ("two", "2m"))]
        answers = await asyncio.gather(*(each.sync(w.store, shards=4) for each in both))
        assert sorted(each.done for [each] in answers) == ["created", "refused"]
        assert len(await w.history("report")) == 1

    play(url, story)


def test_nodes_of_one_app_that_start_together(url: str) -> None:
    async def story(w: World) -> None:
        await w.sync(app(report, load))
        await w.sync(app(load))
        answers = await asyncio.gather(*(app(report).sync(w.store, shards=4) for _ in range(4)))
        done = [each.done for answer in answers for each in answer]
        assert done.count("resumed") == done.count("paused") == 1
        assert set(done) == {"resumed", "paused", "unchanged"}
        assert await w.jobs() == {"report": "active", "load": "paused"}
        assert len(await w.history("load")) == 2
        answers = await asyncio.gather(*(app(report).sync(w.store, shards=4, prune="delete") for _ in range(4)))
        done = [each.done for answer in answers for each in answer]
        assert done.count("deleted") == 1
        assert "refused" not in done

    play(url, story)


def test_more_jobs_than_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "BATCH", 2)

    async def story(w: World) -> None:
        shop = Fleetcron(name="shop")
        for number in range(5):
            shop.job(every="1h", name=f"job-{number}", tenant=f"tenant-{number % 2}")(report)
        await w.sync(shop)
        assert len(await w.sync(app())) == 5

    play(":memory:", story)


def test_what_the_log_says(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    sync.tell(
        "app:shop",
        [
            Applied("default", "a", "created"),
            Applied("default", "b", "created"),
            Applied("acme", "c", "paused"),
            Applied("acme", "d", "refused", reason="no"),
        ],
    )
    sync.tell("app:empty", [])
    assert [record.getMessage() for record in caplog.records] == [
        "jobs of app:shop: 2 created, 1 paused, 1 refused",
        "paused by app:shop: acme/c",
        "jobs of app:shop that were refused: acme/d: no",
        "jobs of app:empty: none",
    ]
