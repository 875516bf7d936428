"""The store refuses something, and not because it is away: nothing is forgotten for that, and no success is lost."""

from typing import Any

import pytest

from fleetcron.errors import StoreError
from fleetcron.model.outcome import Succeeded
from fleetcron.model.rules import RetryRule
from fleetcron.model.states import RunState
from fleetcron.store.definitions import Definitions
from tests.worker.crew import Crew, job
from tests.worker.plays import played

REFUSED = StoreError("the store refuses it")


async def noop(_ctx: Any) -> None:
    pass


@pytest.mark.parametrize("times", [1, 3])
def test_what_was_claimed_and_cannot_be_read_goes_back(
    sqlite_memory_url: str, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """It costs no attempt, is tried again, and is not held by somebody who does nothing with it."""
    read, left = Definitions.read, times

    async def refusing(self: Definitions, *given: Any) -> Any:
        nonlocal left
        left -= 1
        if left >= 0:
            raise REFUSED
        return await read(self, *given)

    async def scenario(made: Crew) -> None:
        await made.define(job())
        worker = made.join()
        [line] = await made.ended(await made.trigger())
        assert (line.run.state, line.run.attempt, line.run.losses) == (RunState.SUCCEEDED, 1, 0)
        assert worker.health.counts["handed_back"] == times
        assert worker._intake.on_the_way == set()

    monkeypatch.setattr(Definitions, "read", refusing)
    played(sqlite_memory_url, scenario, {"t:f": noop})


def test_a_success_that_is_refused_once_is_a_success(sqlite_memory_url: str) -> None:
    async def scenario(made: Crew) -> None:
        await made.define(job(retry=RetryRule(max_attempts=1)))
        worker = made.join()
        whole, refused = worker._acks._attempts.finish, 0

        async def finish(node_id: str, ended: Any, *rest: Any, **more: Any) -> Any:
            nonlocal refused
            assert [each.outcome for each in ended] == [Succeeded()]
            if refused < 2:
                refused += 1
                raise REFUSED
            return await whole(node_id, ended, *rest, **more)

        worker._acks._attempts.finish = finish  # type: ignore[method-assign]
        [line] = await made.ended(await made.trigger())
        assert (line.run.state, refused) == (RunState.SUCCEEDED, 2)

    played(sqlite_memory_url, scenario, {"t:f": noop})
