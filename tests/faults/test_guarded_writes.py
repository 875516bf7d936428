"""A zombie that goes on writing when its run is another one's: what it guards is refused, what it does not is not."""

import asyncio
import signal

from fleetcron.model.target import PythonTarget
from tests.faults.fleet import until
from tests.faults.test_work_zombies import falls_asleep
from tests.faults.work_fleet import Siege, create, job, once, rows_of, trigger
from tests.faults.work_guarded import GATE, TABLES
from tests.faults.work_node import GUARDED
from tests.store.engines import admin

JOBS = {"awaited": "posts", "plain": "posts_plainly"}


def test_a_zombie_cannot_commit_a_guarded_write(postgres_siege: Siege) -> None:
    siege = postgres_siege
    jobs = [once(job(name, PythonTarget(f"{GUARDED}:{does}"), url=siege.url)) for name, does in JOBS.items()]

    async def scenario() -> None:
        await create(siege.url, jobs)
        async with admin(siege.url) as gate:
            await gate.execute(TABLES)
            await gate.execute(f"SELECT pg_advisory_lock({GATE}), pg_advisory_lock({GATE + 1})")
            # its functions would be killed with its lease: here they go on, as those of a machine that was asleep do
            sleeper = siege.born("sleeper", roles=["scheduler", "worker"], switch=False)
            for one in jobs:
                await trigger(siege.url, one.name)
            await until(lambda: len(siege.said("open")) == len(jobs))  # with a transaction open
            siege.survivor()
            sleeper.send(signal.SIGSTOP)
            await falls_asleep(siege, sleeper)
            # nobody was kept from taking the runs over
            await until(lambda: len(siege.said("posted", attempt=2)) == len(jobs))
            assert siege.said("refused") == []
            await gate.execute(f"SELECT pg_advisory_unlock({GATE})")
            await until(lambda: len(siege.said("posted", attempt=1)) == len(jobs))
            await gate.execute(f"SELECT pg_advisory_unlock({GATE + 1})")
            sleeper.send(signal.SIGCONT)
            await until(lambda: sleeper.has_logged("the worker has begun anew"))
            await siege.heals()

    asyncio.run(scenario())
    refused = {(line["job"], line["how"]): line["why"] for line in siege.said("refused", attempt=1)}
    assert refused.keys() == {(name, how) for name in JOBS for how in ("guarded", "fenced")}
    assert "attempt 1 of run" in refused["awaited", "guarded"]
    assert "does not hold the run any more" in refused["awaited", "guarded"]
    assert "a later attempt than 1" in refused["plain", "fenced"]
    assert siege.said("refused", attempt=2) == []
    rows = rows_of(siege.url, "SELECT job, how, attempt FROM public.posted")
    posted = {(name, how): sorted(r["attempt"] for r in rows if (r["job"], r["how"]) == (name, how))
              for name in JOBS for how in ("guarded", "fenced", "plain")}  # fmt: skip
    for name in JOBS:
        assert posted[name, "guarded"] == posted[name, "fenced"] == [2]
        assert posted[name, "plain"] == [1, 2]  # without a guard the zombie has written
