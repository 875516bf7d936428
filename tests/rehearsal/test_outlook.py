"""Figures of a rehearsal, its durations and its changes: pure functions."""

import pytest

from fleetcron.errors import DefinitionError
from fleetcron.model.definition import Definition
from fleetcron.model.outcome import Failed, Fault, Snoozed, Succeeded
from fleetcron.model.rules import EveryEntry, MisfireRule
from fleetcron.model.target import PythonTarget
from fleetcron.simulate.changes import changed
from fleetcron.simulate.durations import Durations, Lasting, matches
from fleetcron.simulate.outlook import Facts, Figures, RunFact, Stretch, Work, levels, outlook, peak

BOOM = Failed(Fault("boom"))


def run(job: str, tick: int, state: str, *works: tuple[int, int | None], finished: int | None = None) -> RunFact:
    made = [Work(start, end, "succeeded" if end else "running") for start, end in works]
    return RunFact(job, tick, tick, state, "live", 1, finished, made)


def test_every_tick_is_counted_once() -> None:
    runs = [
        run("t/a", 0, "succeeded", (0, 1_000)),
        run("t/a", 10_000, "skipped", finished=10_000),
        run("t/a", 20_000, "running", (25_000, None)),
        run("t/b", 0, "succeeded", (500, 600), (2_000, 3_000)),
        run("t/b", 5_000, "waiting"),
    ]
    ledger = [Stretch("t/a", 30, 50, 3, "skipped", "covered"), Stretch("t/b", 1, 2, 2, "missed", "too_old")]
    facts = Facts(["t/a", "t/b", "t/c"], 0, 60_000, runs, ledger, [], {"t/a": "x", "t/b": "y", "t/c": "y"}, {})
    found = outlook(facts)
    assert found.total.ticks == 10
    assert {name: number for name, number in found.by_job["t/a"].answers.items() if number} == {
        "succeeded": 1, "skipped": 1, "merged": 3, "unfinished": 1,
    }  # fmt: skip
    assert found.by_job["t/b"].answers["missed"] == 2
    assert found.by_job["t/b"].attempts == 2
    assert found.by_job["t/c"].late(50) is None
    assert [found.total.late(percent) for percent in (50, 95, 100)] == [500, 5_000, 5_000]
    assert found.running.most == 2
    assert found.running_by_pool["x"].most == 1
    assert found.waiting == (2, 20_000)  # t/a waits from 20 to 25, t/b from 5 to the end and before 0.5


def test_percentiles_are_those_that_were() -> None:
    figures = Figures({}, 0, list(range(1, 101)))
    assert [figures.late(percent) for percent in (50, 95, 100)] == [50, 95, 100]
    assert Figures({}, 0, [7]).late(50) == 7


def test_what_ends_as_another_begins_is_not_two_at_a_time() -> None:
    assert peak([(0, 10), (10, 20)]).most == 1
    assert levels([(0, 10), (5, 20)]) == [(0, 1), (5, 2), (10, 1), (20, 0)]
    assert levels([(5, 5)]) == []


def test_where_durations_come_from() -> None:
    durations = Durations(
        said={"acme/*": 1_000}, past={("t/a", 5): [Lasting(2, BOOM), Lasting(3)]}, seen={"t/a": [10, 20, 30]}
    )
    assert durations.of("acme/x", 5, 1) == Lasting(1_000, Succeeded())
    assert [durations.of("t/a", 5, attempt) for attempt in (1, 2, 3)] == [Lasting(2, BOOM), Lasting(3), Lasting(3)]
    drawn = [durations.of("t/a", tick, 1).ms for tick in range(1000, 1900)]
    assert [drawn.count(ms) for ms in (10, 20, 30)] == pytest.approx([300] * 3, abs=60)
    assert drawn == [durations.of("t/a", tick, 1).ms for tick in range(1000, 1900)]
    assert durations.of("t/b", 5, 1).ms == 5_000
    assert durations.origins(["acme/x", "t/a", "t/b"]) == {"said": 1, "past": 1, "default": 1}


def test_what_nobody_saw_the_end_of_goes_on_as_usual() -> None:
    """Once: a snooze that nobody has seen the end of is not one for ever."""
    past = {("t/a", 5): [Lasting(2, Snoozed(60)), Lasting(300, None)], ("t/a", 6): [Lasting(2, Snoozed(60))]}
    durations = Durations(past=past, seen={"t/a": [20]})
    assert [durations.of("t/a", 5, attempt) for attempt in (1, 2)] == [Lasting(2, Snoozed(60)), Lasting(320)]
    assert [durations.of("t/a", 6, attempt) for attempt in (1, 2)] == [Lasting(2, Snoozed(60)), Lasting(20)]


def test_what_the_next_tick_put_an_end_to_would_have_taken_longer() -> None:
    """One in three was stopped after 10: those that were seen are shorter by construction."""
    durations = Durations(seen={"t/a": [2, 4]}, cut={"t/a": [10], "t/b": [10]})
    drawn = [durations.of("t/a", tick, 1).ms for tick in range(1000, 1900)]
    assert [drawn.count(ms) for ms in (2, 4, 12, 14)] == pytest.approx([300, 300, 150, 150], abs=60)
    assert durations.of("t/b", 5, 1).ms == 5_010  # none was seen to its end
    assert durations.origins(["t/a", "t/b", "t/c"]) == {"seen": 2, "default": 1}
    past = Durations(past={("t/a", 5): [Lasting(7, None)]}, seen=durations.seen, cut=durations.cut)
    assert past.of("t/a", 5, 1).ms in (9, 11)  # it has had its beginning


def test_names_match_with_or_without_a_tenant() -> None:
    assert matches("report", "acme/report")
    assert matches("*", "acme/report")
    assert matches("acme/*", "acme/report")
    assert not matches("acme/*", "other/report")
    assert not matches("rep", "acme/report")


def job(name: str) -> Definition:
    return Definition(name, (EveryEntry(60_000),), PythonTarget("a:b"), misfire=MisfireRule(window_ms=7_200_000))


def test_a_change_leaves_the_rest_as_it_is() -> None:
    before = [job("a.b"), job("c")]
    after = changed(before, ["a.b.misfire=all", "*.retry.max_attempts=2", "c.start_deadline=5m"])
    assert [each.misfire.policy for each in after] == ["all", "latest"]
    assert after[0].misfire.window_ms == 7_200_000
    assert [each.retry.max_attempts for each in after] == [2, 2]
    assert [each.start_deadline_ms for each in after] == [None, 300_000]
    assert changed(before, []) == before


def test_all_mistakes_of_all_changes() -> None:
    with pytest.raises(DefinitionError) as caught:
        changed([job("a")], ["b.misfire=all", "a.overlap=often", "a.nothing=1", "a"])
    assert len(caught.value.mistakes) == 4
