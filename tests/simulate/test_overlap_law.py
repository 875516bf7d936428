"""The law about overlaps can be broken where people replay runs: by a claim that looks at replayed ones, and by one
that looks at nothing."""

import asyncio
from dataclasses import replace

import pytest

from fleetcron.model.definition import Definition
from fleetcron.model.rules import EveryEntry, OverlapRule
from fleetcron.model.target import PythonTarget
from fleetcron.store.statements import Statements
from tests.simulate.bad_plans import replayed_runs_count_again
from tests.simulate.changing import text
from tests.simulate.jobs import Manner
from tests.simulate.laws import judged
from tests.simulate.scenario import small
from tests.simulate.world import World


def story(takes_s: float) -> tuple[dict[int, str], list[str]]:
    """A run is cancelled in its middle and replayed, and still runs when the next tick is due. Which state the runs of
    the first ticks have, and which laws were broken."""
    job = Definition("a", (EveryEntry(60_000, 0),), PythonTarget("sim:f"), overlap=OverlapRule("skip"))
    scenario = replace(small(job, minutes=4), manners={"a": Manner("ok", (takes_s, takes_s))})
    world = World(scenario)

    async def people(_until_s: float) -> None:
        store = world.people._store
        while not (found := world.people._runs("EXISTS (SELECT 1 FROM leases AS l WHERE l.run_id = runs.run_id)")):
            await asyncio.sleep(1)
        world.record.asked_to_cancel.update(found)
        await store.steering.cancel(found, None, actor="people")
        await asyncio.sleep(35)
        await store.steering.replay(found, actor="people")

    world.people.live = people  # type: ignore[method-assign]
    record = world.run()
    states = {row["run_id"]: row["state"] for row in record.tables["runs"]}
    return states, [each.text for each in judged(scenario, record) if each.law == "I1"]


@pytest.fixture
def _statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test changes is gone after it."""
    known = Statements.for_engine("sqlite")
    monkeypatch.setattr(known, "_statements", dict(known._statements))


def test_the_tick_after_a_replay_is_not_skipped() -> None:
    states, broken = story(40)
    assert list(states.values())[:2] == ["succeeded", "succeeded"]
    assert broken == []


@pytest.mark.usefixtures("_statements")
def test_whoever_skips_for_a_replayed_run_is_caught() -> None:
    replayed_runs_count_again()
    states, broken = story(40)
    assert list(states.values())[1] == "skipped"
    assert broken == ["run 2 was skipped and did not overlap"]


@pytest.mark.usefixtures("_statements")
def test_whoever_looks_past_a_run_that_was_not_replayed_is_caught() -> None:
    text("runs_previous", ("AND i.round = 0", "AND i.round < 0"))
    states, broken = story(70)
    assert "skipped" not in states.values()
    assert any("overlapped and was not skipped" in each for each in broken), broken
