"""Shadow, then hand-over, on virtual time: the old cron runs the real files of Debian and pings us, job after job is
handed over at an instant of its own, and every tick has run exactly once. The old cron is cronsim, with Debian's rules
at clock changes; who ran what is counted by a list that the two schedulers only append to."""

import subprocess
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

import pytest

from fleetcron.cli.imported import yaml_of
from fleetcron.imports.cronjobs import add_manifests
from fleetcron.imports.crontab_jobs import CrontabFile, add_crontab
from fleetcron.imports.plan import Plan, Wish
from fleetcron.model.ping import Told
from fleetcron.store.jobs import JobFilter
from fleetcron.store.written import Ok
from fleetcron.testing import World, world
from fleetcron.views.shadow import Report, reports
from tests.imports.test_crontab_ticks import of_cronsim

DEBIAN = Path(__file__).parent / "debian"
ZONE = "America/New_York"
MOMENT = timedelta(milliseconds=1)  # what is due at the end itself is done
MANIFEST = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: hello}
spec:
  schedule: "*/20 * * * *"
  timeZone: America/New_York
  jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: b, command: [date]}]}}}}
"""


def imported(wish: Wish) -> tuple[Plan, dict[str, str]]:
    """/etc/crontab, the folder cron.d and a CronJob; and the expression of each job, as its file has it."""
    plan = Plan(wish)
    expressions = {}
    files = [(DEBIAN / "crontab", None), *((path, path.name) for path in sorted((DEBIAN / "cron.d").iterdir()))]
    for path, stem in files:
        text = path.read_text()
        add_crontab(plan, CrontabFile(str(path), text, True, ZONE, stem))
        mine = [job for job in plan.jobs if job.origin.file == str(path)]
        expressions |= {job.name: " ".join(text.split("\n")[(job.origin.line or 0) - 1].split()[:5]) for job in mine}
    add_manifests(plan, "cronjob.yaml", MANIFEST)
    return plan, expressions | {"hello": "*/20 * * * *"}


class OldCron:
    """Runs every tick of a job before the instant at which its line is taken out, and pings."""

    def __init__(self, expressions: dict[str, str], begin: datetime, end: datetime) -> None:
        self.ticks = {name: of_cronsim(text, ZONE, begin, end + MOMENT) for name, text in expressions.items()}
        self.until: dict[str, datetime] = {}
        self.ran: list[tuple[str, datetime]] = []

    def starts(self) -> Iterator[tuple[datetime, list[str]]]:
        whole = sorted((tick, name) for name, ticks in self.ticks.items() for tick in ticks)
        for tick, each in groupby(whole, key=lambda pair: pair[0]):
            yield tick, [name for _, name in each]

    def run(self, w: World, tick: datetime, names: list[str]) -> None:
        for name in names:
            if name not in self.until or tick < self.until[name]:
                self.ran.append((name, tick))
                noted = w._stage.do(w._stage.store.pings.note("default", name, Told("end", 0, 0, host="old")))
                assert isinstance(noted, Ok)


def compared(w: World, name: str | None = None) -> list[Report]:
    async def ask() -> list[Report]:
        store = w._stage.store
        return await reports(store, await store.jobs.list(JobFilter(name=name, shadow=True), 100))

    return w._stage.do(ask())


def hand_over(w: World, name: str, at: datetime) -> str:
    return w._stage.do(w._stage.desk.hand_over("default", name, int(at.timestamp() * 1000))).done


@pytest.mark.parametrize("day", ["2027-03-14", "2027-11-07"])
def test_every_tick_runs_once_whoever_has_it(day: str) -> None:
    """Days of clock changes. Half of the instants are ticks; one is said long ahead, the others minutes."""
    begin = datetime.fromisoformat(f"{day}T00:00:00+00:00")
    end = begin + timedelta(hours=30)
    plan, expressions = imported(Wish(shadow=True))
    assert len(expressions) == 12
    old = OldCron(expressions, begin, end)
    for number, (name, ticks) in enumerate(sorted(old.ticks.items())):
        at = begin + timedelta(hours=4 + 2 * number, seconds=1)
        on_a_tick = next((tick for tick in ticks if tick >= at), None)
        old.until[name] = on_a_tick if number % 2 and on_a_tick else at
    ahead = {name: 1440 if name == "hello" else 3 for name in old.until}
    open_jobs = dict(old.until)
    with world(yaml_of(plan), tz="UTC", start=begin) as w:
        for tick, names in old.starts():
            for name, at in list(open_jobs.items()):
                if tick >= at - timedelta(minutes=ahead[name]):
                    said = at - timedelta(minutes=ahead[name])
                    w.run_until(max(w.now, said))
                    [report] = compared(w, name)
                    assert report.verdict in ("same", "nothing yet"), (name, report.compared)
                    assert hand_over(w, name, at) == "handed_over"
                    assert hand_over(w, name, at) == "unchanged"
                    del open_jobs[name]
            w.run_until(tick)
            old.run(w, tick, names)
        w.run_until(end)
        assert not open_jobs
        ours = [(run.job, run.scheduled_for.astimezone(UTC)) for run in w.runs() if run.state == "succeeded"]
        assert len(ours) == len(w.runs())
        whole = Counter((name, tick) for name, ticks in old.ticks.items() for tick in ticks)
        ran = Counter([*old.ran, *ours])
        assert whole - ran == Counter(), "lost"
        assert ran - whole == Counter(), "doubled"
        assert len(old.ran) > 150
        assert len(ours) > 100
        for name in old.ticks:
            noted = [line for line in w.ledger(name) if line.reason == "shadow"]
            assert noted == w.ledger(name)
            assert sum(line.ticks for line in noted) == sum(tick < old.until[name] for tick in old.ticks[name]), name
        assert {report.verdict for report in compared(w)} <= {"same", "nothing yet"}


@pytest.mark.parametrize("policy", ["all", "latest"])
@pytest.mark.parametrize("at", ["2027-06-06T12:00:00+00:00", "2027-06-06T12:03:00+00:00"])
def test_nobody_plans_at_the_instant(policy: str, at: str) -> None:
    """The fleet is down from before the instant until after it. The old cron has what it had, and we the rest."""
    instant, begin = datetime.fromisoformat(at), datetime.fromisoformat("2027-06-06T11:00:00+00:00")
    end = begin + timedelta(hours=2)
    job = f"name: a, schedule: {{cron: '*/5 * * * *'}}, run: {{command: [x]}}, misfire: {policy}, shadow: true"
    text = f"jobs:\n- {{{job}}}\n"
    old = OldCron({"a": "*/5 * * * *"}, begin, end)
    old.until["a"] = instant
    with world(text, start=begin) as w:
        w.outage("11:42", "12:31")
        assert hand_over(w, "a", instant) == "handed_over"
        for tick, names in old.starts():
            w.run_until(tick)
            old.run(w, tick, names)
        w.run_until(end)
        mine = [tick for tick in old.ticks["a"] if tick >= instant]
        noted = [line for line in w.ledger("a") if line.reason == "shadow"]
        assert sum(line.ticks for line in noted) == len(old.ticks["a"]) - len(mine)
        assert max(line.last for line in noted) < instant
        ours = [run.scheduled_for.astimezone(UTC) for run in w.runs("a")]
        if policy == "all":
            assert ours == mine
        else:  # one run for what was late, which covers the others
            late = [tick for tick in mine if tick < datetime.fromisoformat("2027-06-06T12:31:00+00:00")]
            assert ours == mine[len(late) - 1 :]
            assert sum(run.covers for run in w.runs("a")) == len(mine)
        assert [report.verdict for report in compared(w)] == ["same"]


def test_back_into_shadow_and_over_again() -> None:
    begin = datetime.fromisoformat("2027-06-06T08:00:00+00:00")
    text = "jobs:\n- {name: a, schedule: {cron: '* * * * *'}, run: {command: [x]}, shadow: true}\n"
    with world(text, start=begin) as w:
        halves = [hand_over(w, "a", begin + timedelta(minutes=10))]
        w.run_until("08:20:30")
        halves.append(w._stage.do(w._stage.desk.take_back("default", "a")).done)
        w.run_until("08:30:30")
        halves.append(hand_over(w, "a", begin + timedelta(minutes=40)))
        w.run_until("08:50:30")
        assert halves == ["handed_over", "shadowed", "handed_over"]
        ran = [run.scheduled_for.minute for run in w.runs("a")]
        assert ran == [*range(10, 21), *range(40, 51)]
        noted = [minute for line in w.ledger("a") for minute in range(line.first.minute, line.last.minute + 1)]
        assert sorted([*ran, *noted]) == list(range(51))


def test_a_line_with_a_ping_gives_the_shell_what_cron_gave_it(tmp_path: Path) -> None:
    """Every line of Debian's files, run by a shell as cron does, with a ping that shows what it is to run."""
    ping = tmp_path / "ping"
    ping.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    ping.chmod(0o755)
    plan, _ = imported(Wish(tenant="acme", shadow=True, hand_over_ms=1_800_000_000_000, ping=str(ping)))
    assert all(job.document["shadow"] == "2027-01-15T08:00:00Z" for job in plan.jobs)
    names = [job.name for job in plan.jobs]
    shown = 0
    for each in plan.pinged:
        old, new = Path(each.file).read_text().split("\n"), each.text.split("\n")
        assert [number for number, (a, b) in enumerate(zip(old, new, strict=True), 1) if a != b] == [*each.lines]
        for number, line in each.lines.items():
            *when, user, command = line.split(None, 6)
            assert (*when, user) == tuple(old[number - 1].split(None, 6)[:6])
            done = subprocess.run(
                ["/bin/sh", "-c", command.replace("\\%", "%")],
                env={"SHELL": "/bin/sh"},
                stdout=subprocess.PIPE,
                check=True,
            )
            meant = old[number - 1].split(None, 6)[6].replace("\\%", "%").rstrip()
            until = ["--until", "2027-01-15T08:00:00Z"]
            assert done.stdout.decode() == "|".join([f"acme/{names[shown]}", *until, "--", "/bin/sh", "-c", meant, ""])
            shown += 1
    assert shown == 11
