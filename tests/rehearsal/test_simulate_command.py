"""`fleetcron simulate`: what would happen, on the real engine."""

import json
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from fleetcron.simulate.outlook import ANSWERS, Facts
from fleetcron.simulate.timeline import svg
from tests.cli.folder import Folder, alive

JOBS = """
jobs:
  - name: hourly
    schedule: {cron: "0 * * * *"}
    run: {command: ["true"]}
    misfire: %s
    overlap: queue
  - name: nightly
    tenant: acme
    schedule: {cron: "30 2 * * *", timezone: America/New_York}
    run: {http: {url: "https://example.com/"}}
    pool: reports
"""
DAY = ("--from", "2027-01-04T00:30:00Z", "--for", "12h")
OUTAGE = ("--outage", "2027-01-04T01:30:00Z/2027-01-04T05:30:00Z")


def figures(said: Any, job: str, at: int = 0) -> Any:
    [found] = [each for each in said["simulations"][at]["jobs"] if each["job"] == job]
    return found


@pytest.mark.parametrize(
    ("misfire", "expected"),
    [
        ("skip", {"succeeded": 8, "skipped": 4, "merged": 0, "missed": 0, "late": 0}),
        ("latest", {"succeeded": 9, "skipped": 0, "merged": 3, "missed": 0, "late": 1800}),
        ("all", {"succeeded": 12, "skipped": 0, "merged": 0, "missed": 0, "late": 12_600}),
        ("{policy: all, limit: 1}", {"succeeded": 9, "skipped": 0, "merged": 0, "missed": 3, "late": 1800}),
    ],
)
def test_an_outage_under_each_misfire_policy(quick: Folder, misfire: str, expected: dict[str, int]) -> None:
    quick.write("jobs.yaml", JOBS % misfire)
    found = figures(quick.json("simulate", "-f", "jobs.yaml", *DAY, *OUTAGE), "default/hourly")
    late_s = expected.pop("late")
    assert {name: found[name] for name in expected} == expected
    assert found["ticks"] == 12
    assert found["late_ms"]["max"] == pytest.approx(late_s * 1000, abs=1000)


def test_two_policies_side_by_side(quick: Folder) -> None:
    quick.write("jobs.yaml", JOBS % "skip")
    change = ("--set", "hourly.misfire=all", "--compare")
    said = quick.json("simulate", "-f", "jobs.yaml", *DAY, *OUTAGE, *change)
    assert [each["title"] for each in said["simulations"]] == ["as it is", "hourly.misfire=all"]
    assert [figures(said, "default/hourly", at)["succeeded"] for at in (0, 1)] == [8, 12]
    assert figures(said, "acme/nightly", 0) == figures(said, "acme/nightly", 1)
    shown = quick("simulate", "-f", "jobs.yaml", *DAY, *OUTAGE, *change).stdout
    assert re.search(r"default/hourly +as it is +12 +8 +4", shown), shown
    assert re.search(r" +hourly.misfire=all +12 +12 +0", shown), shown
    assert "running at most" in shown
    assert "2 jobs taken as 5s" in shown


def test_only_the_change_without_compare_and_another_file(quick: Folder) -> None:
    quick.write("jobs.yaml", JOBS % "skip")
    quick.write("other.yaml", JOBS % "latest")
    said = quick.json("simulate", "-f", "jobs.yaml", *DAY, *OUTAGE, "--set", "*.misfire=all")
    assert [each["title"] for each in said["simulations"]] == ["*.misfire=all"]
    said = quick.json("simulate", "-f", "jobs.yaml", *DAY, *OUTAGE, "--against", "other.yaml")
    assert [figures(said, "default/hourly", at)["succeeded"] for at in (0, 1)] == [8, 9]


def test_the_pools_of_all_variants_are_told(quick: Folder) -> None:
    quick.write("jobs.yaml", JOBS % "skip")
    asked = ("simulate", "-f", "jobs.yaml", *DAY, "--set", "hourly.pool=heavy", "--slots", "heavy=2")
    assert quick.json(*asked)["slots"] == {"heavy": 2, "reports": 10}
    assert "with slots: heavy 2, reports 10" in quick(*asked).stdout
    assert quick.json(*asked, "--compare")["slots"] == {"default": 10, "heavy": 2, "reports": 10}
    assert "with slots: default 10, heavy 2, reports 10" in quick(*asked, "--compare").stdout


def test_slots_make_runs_wait(quick: Folder) -> None:
    """Six jobs of ten minutes at one instant, two at a time."""
    jobs = "\n".join(
        f"  - {{name: j{at}, schedule: {{cron: '0 1 * * *'}}, run: {{command: ['true']}}}}" for at in range(6)
    )
    quick.write("jobs.yaml", f"jobs:\n{jobs}\n")
    given = ("-f", "jobs.yaml", *DAY, "--duration", "*=10m")
    [tight] = quick.json("simulate", *given, "--slots", "default=2")["simulations"]
    assert (tight["peaks"]["running"]["most"], tight["peaks"]["waiting"]["most"]) == (2, 4)
    assert tight["total"]["late_ms"]["max"] == pytest.approx(1_200_000, abs=2000)
    assert tight["total"]["late_ms"]["p50"] == pytest.approx(600_000, abs=2000)
    [two] = quick.json("simulate", *given, "--slots", "default=2", "--workers", "3")["simulations"]
    assert (two["peaks"]["running"]["most"], two["peaks"]["waiting"]["most"]) == (6, 0)


def test_one_slot_has_one_run_at_a_time(quick: Folder) -> None:
    """Four jobs take turns in it, and one follows the other at once."""
    jobs = "\n".join(
        f"  - {{name: j{at}, schedule: {{cron: '* * * * *'}}, run: {{command: ['true']}}, overlap: queue}}"
        for at in range(4)
    )
    quick.write("jobs.yaml", f"jobs:\n{jobs}\n")
    given = ("--duration", "*=1s", "--duration", "j0=65s", "--slots", "default=1")
    [found] = quick.json("simulate", "-f", "jobs.yaml", *DAY[:2], "--for", "1h", *given)["simulations"]
    assert found["peaks"]["running"]["most"] == 1


def test_an_interval_counts_from_the_start_of_the_period(quick: Folder) -> None:
    """As if the jobs were applied then: 00:40, 00:50, … 01:20, and 01:30 is over."""
    quick.write("jobs.yaml", "jobs: [{name: a, schedule: {every: 10m}, run: {command: ['true']}}]")
    [found] = quick.json("simulate", "-f", "jobs.yaml", *DAY[:2], "--for", "1h")["simulations"]
    assert (found["total"]["ticks"], found["peaks"]["running"]["at"]) == (5, "2027-01-04T00:40:00Z")


def test_the_start_is_a_tick_if_an_entry_says_so_that_does_not_count_from_it(quick: Folder) -> None:
    """Every ten minutes from 00:00, the first at 00:10; and five or no minutes past."""
    quick.write(
        "jobs.yaml",
        """
jobs:
  - {name: five, schedule: [{every: 10m}, {cron: "5 * * * *"}], run: {command: ["true"]}}
  - {name: full, schedule: [{every: 10m}, {cron: "0 * * * *"}], run: {command: ["true"]}}
  - {name: anchored, schedule: [{every: 10m}, {every: 1h, anchor: "2027-01-01T00:00:00Z"}], run: {command: ["true"]}}
  - {name: over, schedule: {every: 10m}, ends_at: "2027-01-04T00:05:00Z", run: {command: ["true"]}}
""",
    )
    given = ("simulate", "-f", "jobs.yaml", "--from", "2027-01-04", "--for", "1h")
    said = quick.json(*given)
    found = {name: figures(said, f"default/{name}") for name in ("five", "full", "anchored", "over")}
    assert {name: each["ticks"] for name, each in found.items()} == {"five": 6, "full": 6, "anchored": 6, "over": 0}
    assert sum(each["succeeded"] for each in found.values()) == 18
    assert ", 18 ticks\n" in quick(*given, "--max-ticks", "18").stdout


def test_a_period_may_begin_at_any_millisecond(quick: Folder) -> None:
    """Half a second after 00:00:00, which is a tick of all four and not of the period; and what has begun then would
    keep the others waiting."""
    quick.write(
        "jobs.yaml",
        """
jobs:
  - {name: hourly, schedule: {cron: "0 * * * *"}, run: {command: ["true"]}}
  - {name: often, schedule: {cron: "*/10 * * * * *"}, run: {command: ["true"]}}
  - {name: interval, schedule: {every: 10s}, run: {command: ["true"]}}
  - {name: once, schedule: {at: "2027-01-04T00:00:00Z"}, run: {command: ["true"]}}
""",
    )
    given = ("-f", "jobs.yaml", "--from", "2027-01-04T00:00:00.500Z", "--for", "30s", "--duration", "hourly=10m")
    said = quick.json("simulate", *given, "--slots", "default=1", "--default-duration", "100ms")
    found = [figures(said, f"default/{name}") for name in ("hourly", "often", "interval", "once")]
    assert [each["ticks"] for each in found] == [0, 3, 3, 0]
    assert [each["succeeded"] for each in found] == [0, 3, 3, 0]


def test_what_ends_with_the_period_is_not_over(quick: Folder) -> None:
    """A run of each minute of an hour. The last one still runs when the hour ends, whatever the tick of that instant
    does to it: that tick is not of this period."""
    policies = ("allow", "cancel_previous", "collapse")
    jobs = "\n".join(
        f"  - {{name: {each}, schedule: {{cron: '* * * * *'}}, run: {{command: ['true']}}, overlap: {each}}}"
        for each in policies
    )
    quick.write("jobs.yaml", f"jobs:\n{jobs}\n")
    given = ("-f", "jobs.yaml", "--from", "2027-01-04", "--for", "1h", "--slots", "default=50")
    long = quick.json("simulate", *given, "--duration", "*=210s")
    assert figures(long, "default/cancel_previous")["cancelled"] == 59
    assert [figures(long, f"default/{each}")["unfinished"] for each in policies] == [3, 1, 1]
    assert figures(long, "default/allow")["succeeded"] == 57
    exact = quick.json("simulate", *given, "--duration", "*=1m")  # the last one ends when the hour does
    assert [figures(exact, f"default/{each}")["unfinished"] for each in policies] == [1, 1, 1]


@pytest.mark.parametrize("turned", [False, True])
def test_the_duration_of_a_job_counts_before_that_of_many(quick: Folder, turned: bool) -> None:
    """In whatever order they were written: 12 runs of 40 minutes, one of a minute."""
    quick.write("jobs.yaml", JOBS % "skip")
    said = ["*=1h", "acme/*=1m", "hourly=40m"]
    asked = [word for each in (said[::-1] if turned else said) for word in ("--duration", each)]
    quick("simulate", "-f", "jobs.yaml", *DAY, *asked, "--svg", "t.svg")
    took = re.findall(r"<title>[^<]* succeeded, ([0-9.]+) s", (quick.path / "t.svg").read_text())
    assert sorted({round(float(each)) for each in took}) == [60, 2400]


def test_the_ticks_are_those_of_the_period(quick: Folder) -> None:
    """Those of a job in shadow are answered a minute ahead, and a job with max_ticks has no more than these."""
    quick.write(
        "jobs.yaml",
        """
jobs:
  - {name: shadow, schedule: {cron: "*/10 * * * *"}, shadow: true, run: {command: ["true"]}}
  - {name: twice, schedule: {cron: "*/10 * * * *"}, max_ticks: 2, run: {command: ["true"]}}
""",
    )
    given = ("simulate", "-f", "jobs.yaml", "--from", "2027-01-04", "--for", "1h", "--max-ticks", "8")
    said = quick.json(*given)
    assert [figures(said, f"default/{name}")["ticks"] for name in ("shadow", "twice")] == [6, 2]
    assert figures(said, "default/shadow")["skipped"] == 6
    assert ", 8 ticks\n" in quick(*given).stdout


def test_ticks_that_nobody_has_decided_are_unfinished(quick: Folder) -> None:
    """The fleet is down until the end: eight ticks, of which one was planned before."""
    quick.write("jobs.yaml", JOBS % "skip")
    given = ("simulate", "-f", "jobs.yaml", *DAY, "--outage", "2027-01-04T05:00:00Z/2027-01-04T12:30:00Z")
    found = figures(quick.json(*given), "default/hourly")
    assert (found["ticks"], found["succeeded"], found["unfinished"]) == (12, 4, 8)
    assert ", 13 ticks\n" in quick(*given).stdout


@pytest.mark.parametrize(
    "outages", [["+2h/4h"], ["+2h/3h59m"], ["+2h/1h", "+3h/3h"]], ids=["to the end", "nearly", "two"]
)
def test_ticks_wait_in_an_outage_that_lasts_until_the_end(quick: Folder, outages: list[str]) -> None:
    """As they do in one that ends a minute before it: 02:00, 02:15, … 05:45, and both ticks that are left of four. The
    old scheduler's are none of ours."""
    quick.write(
        "jobs.yaml",
        """
jobs:
  - {name: often, schedule: {cron: "*/15 * * * *"}, misfire: all, overlap: queue, run: {command: ["true"]}}
  - {name: four, schedule: {cron: "0 * * * *"}, max_ticks: 4, misfire: all, run: {command: ["true"]}}
  - {name: old, schedule: {cron: "7 * * * *"}, shadow: true, run: {command: ["true"]}}
""",
    )
    down = [word for outage in outages for word in ("--outage", outage)]
    given = ("-f", "jobs.yaml", "--from", "2027-01-04", "--for", "6h", "--svg", "t.svg")
    [found] = quick.json("simulate", *given, *down)["simulations"]
    assert found["peaks"]["waiting"] == {"most": 18, "at": "2027-01-04T05:45:00Z"}
    assert ">at most 18</text>" in (quick.path / "t.svg").read_text()


def test_ticks_after_a_job_was_paused_are_unfinished(quick: Folder) -> None:
    """Two attempts that meet their timeout pause it; whoever resumes it would decide about the other ten."""
    more = "timeout: 10s, retry: {max_attempts: 1}, pause_after_failures: 2"
    quick.write(
        "jobs.yaml", f"jobs: [{{name: a, schedule: {{cron: '*/5 * * * *'}}, run: {{command: ['true']}}, {more}}}]"
    )
    given = ("-f", "jobs.yaml", "--from", "2027-01-04", "--for", "1h", "--duration", "a=1m")
    found = figures(quick.json("simulate", *given), "default/a")
    assert (found["ticks"], found["dead"], found["unfinished"]) == (12, 2, 10)


def test_a_change_of_the_times_leaves_the_zone(quick: Folder) -> None:
    """04:30 in New York is 08:30Z on that day; 04:30Z would be another time than the one that was asked for."""
    quick.write("jobs.yaml", JOBS % "skip")
    of_day = ("-f", "jobs.yaml", "--from", "2027-03-14T00:00:00Z", "--for", "1d")

    def begun(*wishes: str) -> str | None:
        sets = [word for wish in wishes for word in ("--set", wish)]
        [found] = quick.json("simulate", *of_day, *sets)["simulations"]
        pools = found["peaks"]["pools"]
        return pools["reports"]["at"][11:19] if "reports" in pools else None

    assert begun("nightly.schedule.cron='30 4 * * *'") == "08:30:00"
    assert begun("nightly.schedule.timezone=Asia/Tokyo") == "17:30:00"
    assert begun("nightly.schedule.dst_gap=skip") is None  # there is no 02:30 on that day
    assert begun("nightly.schedule.every=7h") == "07:00:00"
    assert begun("nightly.schedule=5", "nightly.schedule.every=7h") == "07:00:00"
    two = "nightly.schedule=[{cron: '5 1 * * *'}, {cron: '7 1 * * *'}]"
    told = quick("simulate", *of_day, "--set", two, "--set", "nightly.schedule.cron='@daily'", code=2).stderr
    assert "its schedule has 2 entries" in told


def test_an_outage_from_the_start(quick: Folder) -> None:
    quick.write("jobs.yaml", JOBS % "skip")
    said = quick.json("simulate", "-f", "jobs.yaml", *DAY, "--outage", "+0s/5h")
    assert said["outages"] == [{"from": "2027-01-04T00:30:00Z", "to": "2027-01-04T05:30:00Z"}]
    assert figures(said, "default/hourly")["skipped"] == 5


def test_a_clock_change(quick: Folder) -> None:
    quick.write("jobs.yaml", JOBS % "latest")
    said = quick.json("simulate", "-f", "jobs.yaml", "--from", "2027-03-14T06:00:00Z", "--for", "2h")
    assert figures(said, "acme/nightly")["ticks"] == 1  # at 03:00 EDT, which is 07:00Z


def test_a_picture_that_needs_nothing_else(quick: Folder) -> None:
    quick.write("jobs.yaml", JOBS % "skip" + "  - {name: '<', schedule: {every: 1h}, run: {command: ['true']}}\n")
    quick("simulate", "-f", "jobs.yaml", *DAY, code=2)
    quick.write("jobs.yaml", JOBS % "skip")
    change = ("--set", "hourly.misfire=all", "--compare", "--svg", "t.svg")
    quick("simulate", "-f", "jobs.yaml", *DAY, *OUTAGE, *change)
    text = (quick.path / "t.svg").read_text()
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme: dark" in text
    assert re.findall(r"(?:href|src|url\(|@import|<script|<image)", text) == []
    assert [each for each in re.findall(r"https?://[^\"]+", text) if each != "http://www.w3.org/2000/svg"] == []
    names = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert names.count("hourly") == 2  # one in each panel
    bars = [element for element in root.iter("{http://www.w3.org/2000/svg}rect") if element.get("class") == "succeeded"]
    drawn = [bar for bar in bars if len(bar)]  # with a title; the others are the legend
    assert 16 <= len(drawn) <= 8 + 12 + 2  # what falls on the same pixel is drawn once
    assert len([element for element in root.iter() if element.get("class") == "outage" and len(element)]) == 2


def test_one_slot_is_never_two(quick: Folder) -> None:
    """Nor does a worker that has heard nothing for seven minutes tell an end late, or a start early."""
    more = "schedule: {cron: '*/5 * * * *'}, run: {command: [x]}, overlap: queue"
    quick.write("one.yaml", f"jobs: [{{name: q, {more}}}, {{name: r, {more}}}]")
    given = ("--from", "2027-01-01", "--for", "2h", "--duration", "*=7m", "--slots", "default=1")
    [found] = quick.json("simulate", "-f", "one.yaml", *given)["simulations"]
    assert found["peaks"]["running"]["most"] == 1


def test_nothing_runs_in_an_outage(quick: Folder) -> None:
    """What was killed is lost from its first instant on, not from the end of the lease that it left."""
    quick.write("a.yaml", "jobs: [{name: a, schedule: {cron: '* * * * *'}, run: {command: [x]}, overlap: allow}]")
    given = ("--from", "2027-01-04", "--for", "30m", "--slots", "default=2", "--duration", "*=5m", "--svg", "a.svg")
    [found] = quick.json("simulate", "-f", "a.yaml", *given, "--outage", "+10m30s/1m")["simulations"]
    assert found["peaks"]["running"]["most"] == found["peaks"]["pools"]["default"]["most"] == 2
    lost = re.findall(r" lost, ([\d.]+) s", (quick.path / "a.svg").read_text())
    assert lost  # both of 00:06, or so
    assert max(map(float, lost)) <= 300
    quick.write("b.yaml", "jobs: [{name: b, schedule: {cron: '0 * * * *'}, run: {command: [x]}}]")
    given = ("--from", "2027-01-04", "--for", "1h", "--duration", "*=12m", "--svg", "b.svg")
    [found] = quick.json("simulate", "-f", "b.yaml", *given, "--outage", "+10m/50m")["simulations"]
    assert figures({"simulations": [found]}, "default/b")["unfinished"] == 1
    assert " lost, 600 s<" in (quick.path / "b.svg").read_text()  # nobody has noticed by the end


def test_the_first_run_after_an_outage_does_not_begin_in_it(quick: Folder) -> None:
    more = "run: {command: [x]}, misfire: all"
    jobs = (
        f"{{name: a, schedule: {{cron: '0 * * * *'}}, {more}}}, {{name: b, schedule: {{cron: '10 * * * *'}}, {more}}}"
    )
    quick.write("two.yaml", f"jobs: [{jobs}]")
    given = ("--from", "2027-01-04", "--for", "1h", "--duration", "*=12m", "--slots", "default=1")
    found = quick.json("simulate", "-f", "two.yaml", *given, "--outage", "+5m/10m")
    assert figures(found, "default/b")["late_ms"]["max"] >= 5 * 60_000
    assert found["simulations"][0]["peaks"]["running"]["most"] == 1


@pytest.mark.parametrize(
    ("period", "hint"),
    [
        (("--from", "1970-01-01", "--for", "30m"), "1970-01-02"),
        (("--from", "0001-01-01", "--for", "30m"), "1970-01-02"),
        (("--from", "9999-12-31T23:30:00Z", "--for", "1h"), "9999-12-30"),
    ],
)
def test_a_period_that_nobody_can_simulate(quick: Folder, period: tuple[str, ...], hint: str) -> None:
    quick.write("jobs.yaml", JOBS % "skip")
    told = quick("simulate", "-f", "jobs.yaml", *period, code=2).stderr
    assert hint in told
    assert "Traceback" not in told


def test_years_in_a_picture_are_told_apart() -> None:
    begin = 1_798_761_600_000  # 2027
    facts = Facts(["default/yearly"], begin, begin + 3650 * 86_400_000, [], [], [], {}, {})
    labels = re.findall(r">(\d{4}-\d\d-\d\d)</text>", svg([("ten years", facts)]))
    assert 3 < len(labels) <= 12
    assert len({label[:4] for label in labels}) == len(labels)


def test_a_picture_that_cannot_be_written_is_told_before_anything_is_simulated(quick: Folder) -> None:
    """A folder has the name. What is there already stays when something else is wrong."""
    quick.write("jobs.yaml", JOBS % "skip")
    (quick.path / "taken.svg").mkdir()
    many = ("--for", "3650d", "--max-ticks", "10")  # refused while it is simulated
    told = quick("simulate", "-f", "jobs.yaml", *many, "--svg", "taken.svg", code=2)
    assert "taken.svg cannot be written" in told.stderr
    quick.write("old.svg", "<svg/>")
    for name in ("old.svg", "new.svg"):
        assert "cannot be written" not in quick("simulate", "-f", "jobs.yaml", *many, "--svg", name, code=2).stderr
    assert (quick.path / "old.svg").read_text() == "<svg/>"
    assert not (quick.path / "new.svg").exists()


def test_ticks_wait_that_nobody_has_had_room_for(quick: Folder) -> None:
    """Forty minutes of every second are caught up, of which the catch-up lane takes a thousand at a time: those behind
    them were not counted. In the ten minutes that are left two runs a second are worked on, and one of them is new."""
    job = "name: a, schedule: {every: 1s}, misfire: {policy: all, limit: 5000}, overlap: queue, run: {command: [x]}"
    quick.write("jobs.yaml", f"jobs: [{{{job}}}]")
    given = ("-f", "jobs.yaml", "--from", "2027-01-04", "--for", "55m", "--outage", "+5m/40m", "--duration", "a=500ms")
    [found] = quick.json("simulate", *given)["simulations"]
    assert found["total"]["unfinished"] > 1_100
    assert found["peaks"]["waiting"]["most"] == pytest.approx(2_430, abs=10)  # half a minute later they begin


def test_what_was_stopped_is_not_drawn_as_merged(quick: Folder) -> None:
    quick.write("jobs.yaml", JOBS.replace("overlap: queue", "overlap: cancel_previous") % "skip")
    quick("simulate", "-f", "jobs.yaml", *DAY, "--duration", "hourly=2h", "--svg", "t.svg")
    text = (quick.path / "t.svg").read_text()
    kinds = re.findall(r'class="(\w+)"[^>]*><title>\S+ \S+ cancelled', text)
    assert set(kinds) == {"stopped"}
    assert ">stopped</text>" in text  # in the legend
    for scheme in text.split("@media")[:2]:
        fills = dict(re.findall(r"\.fc \.(\w+) { fill: (#\w+)", scheme))
        assert fills["stopped"] not in [fill for name, fill in fills.items() if name != "stopped"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--outage", "yesterday"), "is not FROM/TO"),
        (("--outage", "+9h/+2h"), "ends before it begins"),
        (("--outage", "+9h/0s"), "has no length"),
        (("--outage", "+9h/-5m"), "has no length"),
        (("--outage", "+9h/9h"), "it goes on after the period's end"),
        (("--outage", "+13h/1h"), "it lies outside the period"),
        (("--outage", "2027-01-03/1h"), "it lies outside the period"),
        (("--outage", "+1h/2h", "--outage", "+2h/2h"), "two outages overlap"),
        (("--duration", "hourly"), "is not JOB=DURATION"),
        (("--duration", "nobody=5s"), "no job is called nobody"),
        (("--duration", "hourly=soon"), "is not a duration"),
        (("--slots", "default=none"), "is not POOL=NUMBER"),
        (("--slots", "=4"), "is not POOL=NUMBER"),
        (("--slots", "default=0"), "a worker has from 1 to 9999 slots in a pool"),
        (("--slots", "default=1000000"), "a worker has from 1 to 9999 slots in a pool"),
        (("--slots", f"default={'9' * 5000}"), "a worker has from 1 to 9999 slots in a pool"),
        (("--duration", "hourly=1s", "--duration", "nightly=1s", "--duration", "hourly=2s"), "hourly is said twice"),
        (("--slots", "defualt=4"), "no job is in a pool defualt"),
        (("--outage", "+0x/1h"), "is not a duration"),
        (("--set", "misfire=all"), "is not a change"),
        (("--set", "nobody.misfire=all"), "no job is called nobody"),
        (("--set", "hourly.tiemout=5s"), "is not a field"),
        (("--set", "hourly.misfire=sometimes"), "/misfire/policy"),
        (("--compare",), "nothing to compare with"),
        (("--to", "2027-01-05"), "--to says where the period ends already"),
        (("--max-ticks", "5"), "13 ticks lie in this period"),
        (("--past",), "it is about the jobs of the database"),
        (("--svg", "no/such/folder.svg"), "cannot be written"),
    ],
)
def test_bad_input(quick: Folder, given: tuple[str, ...], words: str) -> None:
    quick.write("jobs.yaml", JOBS % "skip")
    assert words in quick("simulate", "-f", "jobs.yaml", *DAY, *given, code=2).stderr


def test_a_period_has_a_length(quick: Folder) -> None:
    quick.write("jobs.yaml", JOBS % "skip")
    for until, words in (("2027-01-04", "ends when it begins"), ("2027-01-03", "ends before it begins")):
        told = quick("simulate", "-f", "jobs.yaml", "--from", "2027-01-04", "--to", until, code=2).stderr
        assert words in told


def test_the_jobs_of_an_app(quick: Folder) -> None:
    """Its functions are not called."""
    quick.write(
        "shop.py",
        """
from fleetcron import Fleetcron
app = Fleetcron()

@app.job(every="1h", anchor="2027-01-01T00:00:00Z")
def load():
    raise SystemExit(3)
""",
    )
    assert figures(quick.json("simulate", "--app", "shop:app", *DAY), "default/load")["succeeded"] == 12
    assert "--app" in quick("simulate", "--app", "shop:nothing", *DAY, code=2).stderr


def test_without_jobs_and_without_a_database(quick: Folder) -> None:
    assert "there is no database" in quick("simulate", code=2).stderr
    quick("migrate")
    assert "no active job" in quick("simulate", code=2).stderr


def test_the_jobs_of_the_database_with_what_it_has_seen(quick: Folder) -> None:
    """Durations are learned from runs that really were; the past is played again as it was."""
    quick.write(
        "jobs.yaml",
        """
jobs:
  - {name: quick, schedule: {every: 1s}, run: {command: ["true"]}, overlap: queue}
  - {name: paused, schedule: {every: 1h}, run: {command: ["true"]}}
""",
    )
    quick("apply", "-f", "jobs.yaml")
    quick("jobs", "pause", "paused")
    with quick.serving() as node:
        node.until("Look at it")
        seen: list[Any] = []
        while len(seen) < 4:  # the past begins behind the first of them
            seen = quick.json("runs", "--job", "quick", "--state", "succeeded")["runs"]
        node.stop()
    said = quick.json("simulate", "--for", "1m")
    assert (said["left_out"], said["durations"]) == (1, {"seen": 1})
    found = figures(said, "default/quick")
    assert found["ticks"] == pytest.approx(60, abs=1)
    quick.write("other.yaml", "jobs: [{name: other, schedule: {every: 1h}, run: {command: ['true']}}]")
    named = ("--database", "sqlite:///fleetcron.db")
    said = quick.json("simulate", "-f", "other.yaml", "--against", "jobs.yaml", "--for", "1m", *named)
    assert said["durations"] == {"default": 2, "seen": 1}  # of the jobs that it is compared with, too
    first = min(each["scheduled_for"] for each in seen)
    again = quick.json("simulate", "--past", "--from", first, "--set", "*.overlap=skip", "--compare")
    assert again["durations"] == {"past": 1}
    assert figures(again, "default/quick", 0)["ticks"] == figures(again, "default/quick", 1)["ticks"] >= 3
    assert quick.json("runs", "--job", "quick", "--planned")["runs"][0]["state"]  # nothing of it was written there


def test_durations_are_learned_from_those_that_gave_way_too(quick: Folder) -> None:
    """Of those that succeeded none took longer than its interval, so that no tick seemed ever to cancel another. Every
    other tick takes a tenth of a second, and the others would take a minute."""
    command = "if [ $(( $(date +%s) % 2 )) = 0 ]; then sleep 0.1; else sleep 60; fi"
    job = {"name": "a", "schedule": {"every": "1s"}, "run": {"command": ["bash", "-c", command]}}
    quick.write("jobs.yaml", json.dumps({"jobs": [{**job, "overlap": "cancel_previous"}]}))
    quick("apply", "-f", "jobs.yaml")
    with quick.serving() as node:
        node.until("Look at it")
        cancelled: list[Any] = []
        while len(cancelled) < 4:
            cancelled = quick.json("runs", "--job", "a", "--state", "cancelled")["runs"]
        node.stop()
    found = figures(quick.json("simulate", "--for", "5m", "--default-duration", "1h"), "default/a")
    assert found["ticks"] == pytest.approx(300, abs=1)
    assert found["cancelled"] > 10


def test_a_change_of_a_job_that_is_left_out_says_that_it_is(quick: Folder) -> None:
    """Nobody who has paused a job believes that no job is called so."""
    quick.write("jobs.yaml", JOBS % "skip")
    quick("apply", "-f", "jobs.yaml")
    hourly = "schedule: {every: 1h}, run: {command: [x]}"
    quick("apply", "-", given=f"jobs: [{{name: once, max_ticks: 1, {hourly}}}, {{name: a.b, {hourly}}}]")
    quick("jobs", "pause", "acme/nightly")
    quick("jobs", "cancel", "a.b")
    for option in ("--set=%s.misfire=all", "--duration=%s=5m"):
        for job, state in (("nightly", "paused"), ("a.b", "cancelled"), ("once", "finished")):
            told = quick("simulate", "--from", "2027-02-01", option % job, code=2).stderr
            assert f"{job} is {state}, and left out" in told
            assert "only active jobs are simulated" in told
        assert "no job is called nobody" in quick("simulate", option % "nobody", code=2).stderr


def test_the_slots_of_the_living_workers(quick: Folder) -> None:
    """Three workers have 30 and 4 together. So many of them as are asked for have their share of that."""
    jobs = "\n".join(
        f"  - {{name: {pool}{at}, schedule: {{cron: '0 1 * * *'}}, run: {{command: ['true']}}, pool: {pool}}}"
        for pool, number in (("default", 45), ("reports", 7))
        for at in range(number)
    )
    quick.write("jobs.yaml", f"jobs:\n{jobs}\n")
    quick("apply", "-f", "jobs.yaml")
    given = ("simulate", "--from", "2027-01-04", "--for", "2h", "--duration", "*=1h")

    def most(*more: str) -> tuple[int, int]:
        said = quick.json(*given, *more)
        pools = said["simulations"][0]["peaks"]["pools"]
        found = (pools["default"]["most"], pools["reports"]["most"])
        assert found == (min(said["slots"]["default"], 45), min(said["slots"]["reports"], 7))
        return found

    assert most() == (10, 7)  # nobody lives: ten for each pool
    assert "\n2 workers with slots together: default 20, reports 20\n" in quick(*given, "--workers", "2").stdout
    alive(quick, {"default": 10})
    alive(quick, {"default": 15, "nobody": 1})
    alive(quick, {"reports": 4, "default": 5})
    assert most() == most("--workers", "3") == (30, 4)
    assert most("--workers", "1") == (10, 1)
    assert most("--workers", "4") == (40, 5)
    assert most("--workers", "3", "--slots", "reports=2") == (30, 6)
    living = "(the 3 living workers have default 30, reports 4)"
    assert f"\n1 worker with slots: default 30, reports 4 {living}\n" in quick(*given).stdout
    assert (
        f"\n4 workers with slots together: default 40, reports 5 {living}\n" in quick(*given, "--workers", "4").stdout
    )


def test_jobs_that_depend_on_a_job_that_does_not_run(quick: Folder) -> None:
    """Of a paused one nothing is to be expected, and on_upstream_failure decides; who has ended is not waited for."""
    quick.write(
        "jobs.yaml",
        """
jobs:
  - {name: first, schedule: {cron: "0 * * * *"}, run: {command: ["true"]}}
  - {name: load, schedule: {cron: "0 * * * *"}, run: {command: ["true"]}, depends_on: [first]}
  - {name: once, schedule: {at: "2020-01-01T00:00:00Z"}, run: {command: ["true"]}}
  - {name: skips, schedule: {cron: "5 * * * *"}, run: {command: ["true"]}, depends_on: [load]}
  - {name: runs, schedule: {cron: "5 * * * *"}, run: {command: ["true"]}, depends_on: [load], on_upstream_failure: run}
  - {name: waits, schedule: {cron: "5 * * * *"}, run: {command: ["true"]}, depends_on: [load],
     on_upstream_failure: wait, start_deadline: 10m}
  - {name: after, schedule: {cron: "5 * * * *"}, run: {command: ["true"]}, depends_on: [once, first]}
  - {name: alone, schedule: {cron: "*/10 * * * *"}, run: {command: ["true"]}}
""",
    )
    quick("apply", "-f", "jobs.yaml")
    given = ("simulate", "--from", "2027-01-04", "--for", "2h")

    def answers(said: Any) -> dict[str, dict[str, int]]:
        return {
            each["job"].removeprefix("default/"): {name: each[name] for name in ANSWERS if each[name]}
            for each in said["simulations"][0]["jobs"]
        }

    both = {"succeeded": 2}
    all_run = dict.fromkeys(("first", "load", "skips", "runs", "waits", "after"), both) | {"alone": {"succeeded": 12}}
    assert answers(quick.json(*given)) == all_run
    quick("jobs", "pause", "load")
    said = quick.json(*given)
    assert answers(said) == {
        "first": both, "skips": {"skipped": 2}, "runs": both, "waits": {"expired": 2}, "after": both,
        "alone": {"succeeded": 12},
    }  # fmt: skip
    assert (said["left_out"], said["idle_upstreams"]) == (
        2,
        [
            {"job": "default/load", "state": "paused", "needed_by": ["default/runs", "default/skips", "default/waits"]},
            {"job": "default/once", "state": "finished", "needed_by": ["default/after"]},
        ],
    )
    shown = quick(*given, "--set", "skips.depends_on=[first]", "--compare").stdout
    assert re.search(r"default/skips +as it is +2 +0 +2 .*\n +skips.depends_on=\[first\] +2 +2 +0 ", shown), shown
    assert "left out: 2 jobs that are not active\n" in shown
    needed_by = "default/runs, default/skips, default/waits depend on it, and on_upstream_failure decides\n"
    assert f"default/load is paused, and stays so: {needed_by}" in shown
    assert "default/once is finished, and is not waited for: default/after depends on it\n" in shown


def test_the_jobs_of_a_postgres(quick: Folder, postgres18_database: str) -> None:
    """Limits and calendars come along; the simulation itself is on SQLite in memory."""
    quick.database = postgres18_database
    quick.write(
        "jobs.yaml",
        """
calendars: [{name: closed, holidays: ["2027-01-05"]}]
jobs:
  - {name: open, schedule: {cron: "0 * * * *"}, calendars: [closed], run: {command: ["true"]}, max_ticks: 900000}
""",
    )
    quick("apply", "-f", "jobs.yaml")
    quick("pools", "set", "default", "--slots", "1")
    quick("tenants", "set", "default", "--rate", "100/m")
    said = quick.json("simulate", "--from", "2027-01-04T12:00:00Z", "--for", "2d", "--duration", "*=1m")
    assert figures(said, "default/open")["ticks"] == 24  # the fifth is a holiday
