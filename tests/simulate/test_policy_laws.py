"""The laws about policies are silent about a good world, and each speaks up when one fact of its record is another."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest

from fleetcron.model.definition import Definition
from fleetcron.model.rules import EveryEntry, OverlapRule
from fleetcron.model.target import PythonTarget
from tests.simulate import laws_of_overlap as overlap
from tests.simulate import laws_of_policies as policies
from tests.simulate.evidence import Evidence
from tests.simulate.jobs import Manner
from tests.simulate.laws import Law, judged
from tests.simulate.record import Record, Row
from tests.simulate.scenario import Scenario, small
from tests.simulate.world import World

Tables = dict[str, list[Row]]


def job(name: str, every_s: int, policy: str, **more: object) -> Definition:
    rule = OverlapRule(policy)  # type: ignore[arg-type]
    return Definition(name, (EveryEntry(every_s * 1000, 0),), PythonTarget("sim:f"), overlap=rule, **more)  # type: ignore[arg-type]


TAKES_S = {"first": 5, "second": 1, "queues": 25, "collapses": 50, "cancels": 25, "expires": 25, "capped": 13}


@pytest.fixture(scope="module")
def good() -> tuple[Scenario, Record]:
    scenario = small(
        job("first", 60, "skip"),
        job("second", 60, "skip", depends_on=("first",)),
        job("queues", 20, "queue"),
        job("collapses", 20, "collapse"),
        job("cancels", 20, "cancel_previous"),
        job("expires", 20, "queue", start_deadline_ms=15_000),
        job("capped", 10, "allow", tenant="acme"),
        minutes=3,
        slots=20,
    )
    manners = {name: Manner("ok", (takes_s, takes_s)) for name, takes_s in TAKES_S.items()}
    scenario = replace(scenario, manners=manners, tenants={"acme": {"max_in_flight": 2}}, faults=())
    record = World(scenario).run()
    assert judged(scenario, record) == []
    return scenario, record


def runs_of(tables: Tables, name: str) -> list[Row]:
    [job_id] = [row["job_id"] for row in tables["jobs"] if row["name"] == name]
    return [row for row in tables["runs"] if row["job_id"] == job_id]


def of_run(tables: Tables, table: str, run: Row) -> Row:
    return next(row for row in tables[table] if row["run_id"] == run["run_id"])


def ended(tables: Tables, name: str, state: str) -> tuple[Row, Row]:
    """The first run of a job that ended so, and its end."""
    run = next(each for each in runs_of(tables, name) if each["state"] == state)
    return run, of_run(tables, "seen_finals", run)


def upstream_ends_late(tables: Tables) -> None:
    for run in runs_of(tables, "first"):
        of_run(tables, "seen_finals", run)["at_ms"] += 3_000


def upstream_ends_late_for_one_that_is_replayed(tables: Tables) -> None:
    """It was cancelled before it could start."""
    upstream_ends_late(tables)
    for run in runs_of(tables, "second"):
        of_run(tables, "seen_finals", run)["at_ms"] = of_run(tables, "seen_claims", run)["at_ms"] - 1


def upstream_fails(tables: Tables) -> None:
    for run in runs_of(tables, "first"):
        of_run(tables, "seen_finals", run)["state"] = "dead"


def skipped_in_vain(tables: Tables) -> None:
    _, final = ended(tables, "second", "succeeded")
    final.update(state="skipped", reason="upstream first is succeeded")


def cap_was_lower(tables: Tables) -> None:
    for row in tables["seen_caps"]:
        row["most"] = 1


def cap_is_lowered(tables: Tables) -> None:
    """Two are at work by then, and nobody is stopped."""
    [*_, last] = runs_of(tables, "capped")
    at_ms = of_run(tables, "seen_claims", last)["at_ms"]
    tables["seen_caps"].append({"scope": "tenant", "name": "acme", "most": 1, "at_ms": at_ms + 1})


def earlier_tick_waits_on(tables: Tables) -> None:
    first, second, *_ = runs_of(tables, "queues")
    of_run(tables, "seen_queued", first)["to_ms"] = of_run(tables, "seen_claims", second)["at_ms"] + 1


def earlier_tick_comes_later(tables: Tables) -> None:
    """It was not there before."""
    earlier_tick_waits_on(tables)
    first, second, *_ = runs_of(tables, "queues")
    of_run(tables, "seen_queued", first)["from_ms"] = of_run(tables, "seen_claims", second)["at_ms"]


def merged_was_taken(tables: Tables) -> None:
    run, final = ended(tables, "collapses", "merged")
    taken = {"attempt": 1, "node_id": "n0.1", "at_ms": final["at_ms"], "now_ms": final["now_ms"]}
    tables["seen_claims"].append({"run_id": run["run_id"], **taken})


def merged_into_an_older_one(tables: Tables) -> None:
    run, _ = ended(tables, "collapses", "merged")
    run["covered_by"] = runs_of(tables, "collapses")[0]["run_id"]


def merged_into_nothing(tables: Tables) -> None:
    run, _ = ended(tables, "collapses", "merged")
    run["covered_by"] = None


def merged_too_early(tables: Tables) -> None:
    _, final = ended(tables, "collapses", "merged")
    final["now_ms"] -= 15_000


def nobody_was_asked(tables: Tables) -> None:
    tables["seen_cancels"].clear()


def asked_too_early(tables: Tables) -> None:
    for row in tables["seen_cancels"]:
        row["now_ms"] -= 1_000


def expired_too_early(tables: Tables) -> None:
    _, final = ended(tables, "expires", "expired")
    final["now_ms"] -= 60_000


@pytest.mark.parametrize(
    ("law", "change", "says"),
    [
        (policies.i4_upstream_comes_first, upstream_ends_late, "while first had not ended"),
        (policies.i4_upstream_comes_first, upstream_fails, "while first had not succeeded"),
        (policies.i1_skipped_only_for_upstream_that_failed, skipped_in_vain, "first succeeded"),
        (policies.i3_within_the_limits, cap_was_lower, "the limit is 1"),
        (policies.i1_expired_after_the_deadline, expired_too_early, "before its deadline"),
        (overlap.i4_queued_ticks_start_in_order, earlier_tick_waits_on, "which comes first"),
        (overlap.i1_waiting_ticks_give_way, merged_was_taken, "which takes its place"),
        (overlap.i1_merged_into_a_newer_tick, merged_into_an_older_one, "is not newer"),
        (overlap.i1_merged_into_a_newer_tick, merged_into_nothing, "is no tick of its job"),
        (overlap.i1_merged_into_a_newer_tick, merged_too_early, "was not due"),
        (overlap.i3_the_previous_run_is_asked_to_stop, nobody_was_asked, "nobody asked it to stop"),
        (overlap.i1_cancelled_only_by_a_newer_tick, asked_too_early, "no newer tick was due"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_law_that_is_broken(
    good: tuple[Scenario, Record], law: Law, change: Callable[[Tables], None], says: str
) -> None:
    found = broken(good, law, change)
    assert found
    assert all(says in each for each in found), found


@pytest.mark.parametrize(
    ("law", "change"),
    [
        (policies.i4_upstream_comes_first, upstream_ends_late_for_one_that_is_replayed),
        (policies.i3_within_the_limits, cap_is_lowered),
        (overlap.i4_queued_ticks_start_in_order, earlier_tick_comes_later),
    ],
    ids=lambda each: each.__name__,
)
def test_what_is_allowed(good: tuple[Scenario, Record], law: Law, change: Callable[[Tables], None]) -> None:
    assert broken(good, law, change) == []


def broken(good: tuple[Scenario, Record], law: Law, change: Callable[[Tables], None]) -> list[str]:
    scenario, record = good
    tables = deepcopy(record.tables)
    change(tables)
    return [each.text for each in law(Evidence(scenario, replace(record, tables=tables)))]
