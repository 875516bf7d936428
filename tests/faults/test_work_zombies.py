"""Workers that fall asleep past their lease and wake again: what they write then is refused, and nothing ran twice."""

import asyncio
import signal
from itertools import count
from random import Random
from time import monotonic

import pytest

from tests.faults.fleet import until
from tests.faults.work_fleet import COMMANDS, LOAD, Member, Siege, command, create, job, once, rows_of, trigger
from tests.faults.work_patient import Patient
from tests.faults.work_stage import POSTGRES, SQLITE, Sieges, rarely
from tests.soak.rounds import Soak

MANY = 100  # zombies of the long suite, on each store
MANY_INLINE = 20
A_ROUND = 20
AT_ONCE = 4
WAKES_S = 3.0  # a second, and two for a busy machine
LONG = [
    once(job("coroutine", "works", 30)),
    once(job("function", "blocks", 30)),
    once(job("stubborn", "does_not_stop", 30)),
    once(job("command", command("ignores", "30"))),
]


async def falls_asleep(siege: Siege, member: Member) -> None:
    """Until everybody has given it up."""
    await until(lambda: member.asleep)
    siege.sleeps[member.name] += 1

    async def is_given_up() -> bool:
        return not await siege.works(member.name)

    await until(is_given_up)


async def wakes(member: Member) -> None:
    """It notices at once, stops everything, and begins anew."""
    woken_s = monotonic()
    member.send(signal.SIGCONT)
    await until(lambda: member.has_logged("everything is stopped"))
    assert monotonic() - woken_s < WAKES_S
    await until(lambda: member.has_logged("the worker has begun anew"))


def held_by_a_sleeper(siege: Siege, *, switch: bool) -> None:
    """One falls asleep with every kind of work in its hands; what it held goes on elsewhere, and is cut short."""

    async def scenario() -> None:
        await create(siege.url, LONG)
        sleeper = siege.born("sleeper", roles=["scheduler", "worker"], switch=switch)
        for one in LONG:
            await trigger(siege.url, one.name)
        await siege.begun(len(LONG))
        siege.survivor()
        await siege.puts_to_sleep(sleeper)
        await falls_asleep(siege, sleeper)
        await siege.begun(len(LONG), node="survivor")
        await wakes(sleeper)

    asyncio.run(scenario())


@rarely(SQLITE)
def test_nothing_of_a_sleeper_goes_on_when_its_lease_is_over(siege: Siege) -> None:
    """S3-35: not its functions, not its commands, not even those that do not want to stop: nobody runs beside."""
    held_by_a_sleeper(siege, switch=True)
    assert siege.said("beside") == []


@pytest.mark.soak
def test_without_the_switch_it_would_go_on(sqlite_siege: Siege) -> None:
    """The witness is not blind: the processes of a worker that stands still do not stand still."""
    held_by_a_sleeper(sqlite_siege, switch=False)
    assert {line["job"] for line in sqlite_siege.said("beside")} >= {"coroutine", "function", "stubborn", "command"}


@rarely(POSTGRES)
def test_an_inline_sleeper_stops_when_it_wakes(siege: Siege) -> None:
    """What runs in the worker itself stands still with it, and goes on when it wakes, beside whoever has its run by
    then: that is the weaker promise. It is stopped at once, and nothing that it writes is taken."""
    held = [once(job("coroutine", "works", 30)), once(job("function", "blocks", 30))]

    async def scenario() -> None:
        await create(siege.url, held)
        sleeper = siege.born("sleeper", roles=["scheduler", "worker"], isolation="inline")
        for one in held:
            await trigger(siege.url, one.name)
        await siege.begun(len(held))
        siege.survivor()
        await siege.puts_to_sleep(sleeper)
        await falls_asleep(siege, sleeper)
        await siege.begun(len(held), node="survivor")
        await wakes(sleeper)

    asyncio.run(scenario())
    assert [line["how"] for line in siege.said("end", node="sleeper")] == ["stopped"] * len(held)
    assert siege.said("end", node="survivor") == []
    ends = rows_of(siege.url, "SELECT node_id, attempt, outcome FROM attempts ORDER BY run_id")
    assert [(row["attempt"], row["outcome"]) for row in ends] == [(1, "lost")] * len(held)
    leases = rows_of(siege.url, "SELECT node_id, attempt FROM leases ORDER BY run_id")
    assert [(row["node_id"].rpartition("-")[0], row["attempt"]) for row in leases] == [("survivor", 2)] * len(held)


# In the middle of a transaction it would keep everybody from a SQLite file: only PostgreSQL can be woken from that.
BETWEEN = [("working store.committed", 1), ("working store.committed", 6)]
INSIDE = [("claim.written", 3), ("finish.written", 1)]
MORE = [("worker.renew", 3), ("promote.written", 2), ("output.written", 2), ("working store.commit", 5)]


async def risen(siege: Siege, *, more: bool) -> None:
    async def zombie(number: int, step: str, nth: int, then: list[tuple[str, str, int]]) -> None:
        for again in count():
            member = siege.born(f"zombie-{number}-{again}", faults=[("stop", step, nth), *then])
            await until(lambda member=member: not member.alive or member.asleep)
            if not member.could_not_begin:
                break
        await falls_asleep(siege, member)
        if then:
            member.send(signal.SIGCONT)
            await siege.dies(member)
        else:
            await wakes(member)

    await create(siege.url, [*LOAD, *COMMANDS])
    siege.survivor(slots=3)
    await siege.begun(3)
    inside = [*INSIDE, *(MORE if more else [])]
    places = [*BETWEEN, *(inside if siege.url.startswith("postgres") else [])]
    ends: list[list[tuple[str, str, int]]] = [
        *([] for _ in places),
        [("kill", "worker.forsake", 1)],
        [("kill", "worker.forsaken", 1)],
    ]
    places += [("working store.committed", 3), ("working store.committed", 9)]
    zombies = [zombie(number, *place, then) for number, (place, then) in enumerate(zip(places, ends, strict=True))]
    await asyncio.gather(*zombies)
    await siege.heals()


@pytest.mark.parametrize("more", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["few", "more"])
def test_zombies_write_nothing(both_sieges: tuple[Siege, Siege], more: bool) -> None:
    """S4-21: they wake with a claim or an end in their hands. Two of them die while they begin anew."""

    async def scenario() -> None:
        await asyncio.gather(*(risen(siege, more=more) for siege in both_sieges))

    asyncio.run(scenario())
    for siege in both_sieges:
        siege.check()


@rarely(POSTGRES)
def test_an_end_that_comes_too_late_is_refused(siege: Siege) -> None:
    """Its function ends while it sleeps; when it wakes the run is another one's, and its word is not taken."""

    async def scenario() -> int:
        await create(siege.url, [once(job("short", "works", 1.2))])
        sleeper = siege.born("sleeper", roles=["scheduler", "worker"], ttl_s=2.4)
        run = await trigger(siege.url, "short")
        await siege.begun()
        await siege.puts_to_sleep(sleeper)
        siege.survivor()
        await falls_asleep(siege, sleeper)
        await siege.begun(2)
        await wakes(sleeper)
        await siege.heals()
        return run

    run = asyncio.run(scenario())
    assert [line["how"] for line in siege.said("end", run=run)] == ["done", "done"]
    verdict = siege.check()
    assert verdict.events["finish_refused"] == 1
    assert verdict.attempts == {"lost": 1, "succeeded": 1}


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("isolation", "many"), [("host", MANY), ("inline", MANY_INLINE)])
def test_two_hundred_zombies(sieges: Sieges, soak: Soak, isolation: str, many: int) -> None:
    """A hundred on each store, a few at a time, asleep anywhere in their work. Those with `isolation: inline` go on for
    a moment when they wake, as is said of them; everything else is promised of them too."""
    name = "workers sleep past their lease" + (", inline" if isolation == "inline" else "")
    suite = soak.suite(name, sieges.store, goal={"zombie": many}, seed=5)
    suite.notes = ["that they run beside another for a moment is not judged: inline"] if isolation == "inline" else []
    inside = [*INSIDE, *MORE] if sieges.store == "postgres" else []

    async def scenario(siege: Siege, chance: Random) -> None:
        await create(siege.url, [*LOAD, *COMMANDS])
        siege.survivor(slots=3)
        await siege.begun(3)
        woken, turn = count(1), asyncio.Semaphore(AT_ONCE)

        async def zombie(number: int) -> None:
            anywhere = ("working store.committed", chance.randint(1, 60))
            place = chance.choice(inside) if inside and number % 3 == 0 else anywhere
            async with turn:
                member = siege.born(f"zombie-{number}", faults=[("stop", *place)], isolation=isolation)
                await falls_asleep(siege, member)
                await wakes(member)
                await siege.stops(member)
                suite.tell(next(woken))

        await asyncio.gather(*map(zombie, range(A_ROUND)))
        await siege.heals()

    for number in suite.rounds(many // A_ROUND):
        with sieges.begun() as siege:
            asyncio.run(scenario(siege, Random(f"{suite.seed} {number}")))
            lines = [line for line in siege.lines() if isolation == "host" or line["say"] != "beside"]
            suite.over({"zombie": A_ROUND}, siege.judged(lines))
    suite.check()


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_the_default_lease_is_over_in_time(patients: dict[str, Patient], store: str) -> None:
    """S1-2, S3-15, S3-34: a lost worker's run begins again 35 s later at the latest, while another one lives."""
    patient = patients[store]
    siege = patient.siege
    again = asyncio.run(siege.begun(2, patience_s=60, run=patient.run))[1]
    print(f"\nagain after {(again['at_ms'] - patient.killed_ms) / 1000:.1f} s")
    assert (again["node"], again["attempt"]) == ("survivor", 2)
    assert 15_000 < again["at_ms"] - patient.killed_ms <= 35_000
    assert siege.said("beside") == []
