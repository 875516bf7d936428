"""The night of the change, played on virtual time: cron until an instant, fleetcron from it on. 0 lost, 0 doubled.

The fleet is the real scheduler, worker and store; the old cron is cronsim, with Debian's rules at clock changes.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fleetcron.cli.imported import yaml_of
from fleetcron.imports.plan import Plan, Wish
from fleetcron.testing import world
from tests.imports.jobs import crontab
from tests.imports.test_crontab_ticks import of_cronsim

DEBIAN = (Path(__file__).parent / "debian" / "crontab").read_text()
MORE = "*/15 * * * * root a\n30 1 * * * root b\n30 2 * * * root c\n0 0-23 * * * root d\n0 6 * * 0 root e\n"
TEXT = DEBIAN + MORE
ZONE = "America/New_York"


def lines_of(plan: Plan) -> dict[str, str]:
    """The expression of each job, as cron has it."""
    lines = TEXT.split("\n")
    return {job.name: " ".join(lines[(job.origin.line or 0) - 1].split()[:5]) for job in plan.jobs}


@pytest.mark.parametrize(
    "at",
    [
        "2027-03-14T07:00:00Z",  # 03:00, where the clock jumps: the instant is a tick
        "2027-03-14T06:50:00Z",
        "2027-11-07T05:40:00Z",  # between the first 01:30 and the second
        "2027-11-07T06:30:00Z",
        "2027-06-06T10:52:00Z",
    ],
)
def test_no_tick_is_lost_or_doubled(at: str) -> None:
    instant = datetime.fromisoformat(at)
    begin, end = instant - timedelta(hours=9), instant + timedelta(hours=15)
    plan = crontab(TEXT, system=True, timezone=ZONE, wish=Wish(hand_over_ms=int(instant.timestamp() * 1000)))
    assert len(plan.jobs) == 9
    ran = 0
    with world(yaml_of(plan), tz="UTC", start=begin) as w:
        w.run_until(end)
        for name, expression in lines_of(plan).items():
            whole = of_cronsim(expression, ZONE, begin, end + timedelta(milliseconds=1))
            old = [tick for tick in whole if tick < instant]
            runs = w.runs(name)
            assert old + [run.scheduled_for.astimezone(UTC) for run in runs] == whole, name
            assert all(run.state == "succeeded" for run in runs), name
            assert w.ledger(name) == []
            ran += len(runs)
    assert ran > 60
