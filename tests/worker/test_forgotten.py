"""What the store says that a worker holds, and the worker knows nothing of."""

import random

from fleetcron.clock import SystemClock
from fleetcron.executors.assembly import executors
from fleetcron.model.states import RunState
from fleetcron.policy.choose import choose
from fleetcron.policy.late import late
from fleetcron.store.claims import Claim
from fleetcron.store.written import Ok
from fleetcron.worker.loop import Worker, ranked
from tests.worker.crew import Crew, job
from tests.worker.plays import played


def idle(made: Crew) -> Worker:
    """A worker that does nothing by itself."""
    clock = SystemClock()
    make = executors(made.programs, made.executor, {}, clock, made.functions)
    return Worker(made.store, "w1", made.config, make, process="", clock=clock, chance=random.Random(1).random)


async def claim(made: Crew, batch: str) -> int:
    assert isinstance(await made.store.queue.promote(0, 10, ranked, late), Ok)
    taken = await made.store.claims.claim(Claim("w1", batch, "default", 1, 1), choose)
    assert isinstance(taken, Ok)
    [run] = taken.value.runs
    assert run.attempt == 1
    return run.run_id


def test_a_run_that_was_handed_back_and_is_claimed_again_is_not_forgotten(sqlite_memory_url: str) -> None:
    """It has the same number of attempt. The first look met the moment at which it had been handed back, the second
    one that at which it was claimed and the answer had not come: that answer starts it."""

    async def scenario(made: Crew) -> None:
        await made.define(job())
        run_id = await made.trigger()
        worker = idle(made)
        assert await worker.lease.join()
        assert await claim(made, "first") == run_id
        await worker._remember()
        assert isinstance(await made.store.attempts.hand_back("w1", [(run_id, 1, "first")]), Ok)
        worker._intake.asking = "second"
        assert await claim(made, "second") == run_id
        await worker._remember()
        await worker._remember()
        assert worker._acks.keys() == set()

    played(sqlite_memory_url, scenario, {"t:f": lambda: None})


def test_what_was_forgotten_is_given_up_also_while_claims_go_on(sqlite_memory_url: str) -> None:
    async def scenario(made: Crew) -> None:
        await made.define(job())
        run_id = await made.trigger()
        worker = idle(made)
        assert await worker.lease.join()
        assert await claim(made, "first") == run_id
        for asking in ("second", "third"):
            assert worker._acks.keys() == set()
            worker._intake.asking = asking
            await worker._remember()
        assert worker._acks.keys() == {(run_id, 1)}
        [line] = await made.lines(run_id)
        assert line.run.state is RunState.RUNNING  # until that is written

    played(sqlite_memory_url, scenario, {"t:f": lambda: None})
