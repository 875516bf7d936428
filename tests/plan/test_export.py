"""`fleetcron export`: what it writes, plan shows as no change."""

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fleetcron.cli.when import json_text
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from tests.cli.conftest import EXAMPLES
from tests.model.documents import CALENDARS, definitions
from tests.plan.conftest import Moments


@st.composite
def stores(draw: st.DrawFn) -> tuple[list[Definition], list[CalendarDocument]]:
    """Jobs that may depend on the ones before them, and calendars of their tenants."""
    made = draw(st.lists(definitions(), min_size=1, max_size=12, unique_by=lambda each: (each.tenant, each.name)))
    jobs: list[Definition] = []
    for each in made:
        near = [other.name for other in jobs if other.tenant == each.tenant]
        needs = tuple(draw(st.lists(st.sampled_from(near), max_size=2, unique=True))) if near else ()
        jobs.append(replace(each, depends_on=needs, calendars=()))
    return jobs, draw(st.lists(CALENDARS, max_size=4, unique_by=lambda each: (each.tenant, each.name)))


@settings(
    max_examples=6,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # each example is a database: to make a failing one smaller takes minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(stores(), st.integers(0, 10**9))
def test_what_is_exported_is_no_change(
    moments: Moments, content: tuple[list[Definition], list[CalendarDocument]], number: int
) -> None:
    jobs, calendars = content
    where = ("--database", f"sqlite:///{number}.db")
    (moments.path / f"{number}.db").unlink(missing_ok=True)
    given = {"jobs": [each.as_document() for each in jobs], "calendars": [each.as_document() for each in calendars]}
    applied = moments.json("apply", "-", *where, given=json_text(given))
    assert applied["counts"]["created"] == len(jobs)
    states = {(job["tenant"], job["name"]): job["state"] for job in applied["jobs"]}
    for options in ((), ("--full",), ("--json",)):
        text = moments("export", *options, *where).stdout
        plan = moments.json("plan", "-", *where, given=text)
        assert (plan["jobs"], plan["calendars"]) == ([], [])
        active = sum(state == "active" for state in states.values())  # the others have ended at once
        assert plan["counts"] == ({"unchanged": active} if active else {})


def test_the_examples_there_and_back(moments: Moments) -> None:
    moments("apply", str(EXAMPLES), "--managed-by", "examples")
    moments("jobs", "pause", "new-prices")
    text = moments("export").stdout
    moments.write("all.yaml", text)
    assert text.splitlines()[0] == "# default/new-prices is paused"
    assert moments("plan", "all.yaml", "--managed-by", "examples", "--prune").stdout.endswith("Nothing to do.\n")
    assert moments("plan", str(EXAMPLES), "--managed-by", "examples", "--prune").stdout.endswith("Nothing to do.\n")
    fresh = moments.json("plan", "all.yaml", "--database", "sqlite:///fresh.db", code=2)
    assert (fresh["counts"], [each["done"] for each in fresh["calendars"]]) == ({"created": 5}, ["created"])


def test_which_jobs_and_calendars(moments: Moments) -> None:
    moments("apply", str(EXAMPLES))
    own = "jobs: [{name: own, schedule: {every: 1h}, run: {command: [x]}}]\n"
    moments.write("more.yaml", own + "calendars: [{name: unused, holidays: [12-24]}]\n")
    moments("apply", "more.yaml", "--managed-by", "more")

    def exported(*options: str) -> tuple[set[str], set[str]]:
        told = moments.json("export", *options)
        return {job["name"] for job in told["jobs"]}, {each["name"] for each in told.get("calendars", ())}

    assert exported()[1] == {"us-holidays", "unused"}
    assert exported("--tenant", "acme") == ({"nightly-report", "monthly-billing"}, {"us-holidays"})
    assert exported("--managed-by", "more") == ({"own"}, set())
    assert exported("acme/monthly-billing") == ({"monthly-billing"}, {"us-holidays"})
    assert "leave out --managed-by" in moments("export", "own", "--managed-by", "more", code=2).stderr


@pytest.mark.parametrize("text", ["${HOME}", "$HOME", "$${X}", "secret://token", "{{ tenant }}"])
def test_what_looks_like_a_reference_stays_as_it_is(moments: Moments, text: str) -> None:
    run = {"command": ["x"], "env": {"A": text}}
    job = {"name": "a", "schedule": {"every": "1h"}, "run": run, "payload": {"x": text}}
    moments("apply", "-", given=json.dumps({"jobs": [job]}))
    [again] = moments.json("export")["jobs"]
    assert again == job
    moments("plan", "-", given=moments("export").stdout)
