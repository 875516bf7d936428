"""Lines of a crontab while no worker can run them: cron starts a job at once or never, and so do its jobs."""

from collections import Counter

from fleetcron.imports.beat import add_beat
from fleetcron.imports.plan import Plan
from fleetcron.model.reading import read_job
from fleetcron.store.history import Span
from tests.imports.jobs import crontab
from tests.store.floor import MINUTE, Floor, on_a_floor


def test_what_waited_for_a_worker_does_not_start_all_at_once() -> None:
    """Every minute, and nobody who runs it for twenty of them."""

    async def story(f: Floor) -> None:
        await f.desk.create(read_job(crontab("* * * * * date\n").jobs[0].document))
        for _ in range(20):
            await f.next_minute()
        await f.join("w1", slots=50)
        begun = await f.claim("w1", room=50)
        assert sorted((f.now - run.due_ms) // MINUTE for run in begun) == [0, 1, 2, 3, 4, 5]
        runs = await f.store.history.runs(Span())
        assert [run.run.state for run in runs].count("expired") == 14

    on_a_floor(story)


def test_what_beat_missed_is_sent_once_and_not_once_for_each_tick() -> None:
    async def story(f: Floor) -> None:
        plan = Plan()
        entry = {"name": "sum", "task": "proj.add", "schedule": {"kind": "interval", "seconds": 60}}
        add_beat(plan, "proj.py", {"entries": [entry]}, "proj")
        await f.desk.create(read_job(plan.jobs[0].document))
        for _ in range(20):
            await f.next_minute()
        await f.join("w1", slots=50)
        sent = 0
        while begun := await f.claim("w1", room=50):
            sent += len(begun)
            for run in begun:
                await f.succeed("w1", run)
        assert sent == 1
        states = Counter(str(line.run.state) for line in await f.store.history.runs(Span()))
        assert (states["succeeded"], states["merged"]) == (1, 19)

    on_a_floor(story)
