"""Every tick of a year of imported crontabs, next to cronsim, which follows Debian's rules at clock changes too."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cronsim import CronSim

from fleetcron.imports.plan import Wish
from tests.imports.calendar_minutes import YEAR, Minute, matching
from tests.imports.jobs import crontab, ticks
from tests.times.reference import tzdata_zone

pytestmark = pytest.mark.xdist_group("minutes")  # one worker keeps the minutes of a year

DEBIAN = Path(__file__).parent / "debian"
EXPRESSIONS = [
    "30 2 * * *", "30 1 * * *", "0 0 * * 7", "0 0 * * sun", "15 3 * jan-mar mon,wed", "0 0 1,15 * 5", "0 4 */2 * mon",
    "0 2 29 2 *", "0 12 8-14 * *", "59 23 31 12 *", "0 6 * * 1-7/2", "0 0 13 * 5", "0 0 * * */2", "0 */12 * * *",
]  # fmt: skip
DENSE = ["*/45 * * * *", "17 * * * *", "0 0-23 * * *", "0 0-22/2 * * *", "5-55/25 */3 * * *", "1,2,30 1-3 * * *"]


def of_cronsim(expression: str, zone: str, low: datetime = YEAR[0], high: datetime = YEAR[1]) -> list[datetime]:
    here = UTC if zone == "UTC" else tzdata_zone(zone)
    found = []
    # it looks for what is later than its start, and is asked from a minute before
    for tick in CronSim(expression, datetime.fromtimestamp(low.timestamp() - 60, here)):
        at = tick.astimezone(UTC)
        if at >= high:
            break
        if at >= low:
            found.append(at)
    return found


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Europe/Berlin"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_year_of_each(expression: str, zone: str) -> None:
    plan = crontab(f"{expression} a\n", timezone=zone)
    theirs = of_cronsim(expression, zone)
    assert theirs or expression == "0 2 29 2 *"
    assert ticks(plan.jobs[0]) == theirs


@pytest.mark.parametrize("expression", DENSE)
def test_a_year_of_dense_ones(expression: str) -> None:
    plan = crontab(f"{expression} a\n", timezone="America/New_York")
    assert ticks(plan.jobs[0]) == of_cronsim(expression, "America/New_York")


def test_a_year_of_debian() -> None:
    texts = [(DEBIAN / "crontab").read_text(), *(path.read_text() for path in sorted((DEBIAN / "cron.d").iterdir()))]
    compared = 0
    for text in texts:
        for job in crontab(text, system=True, timezone="America/New_York").jobs:
            line = text.split("\n")[(job.origin.line or 0) - 1]
            assert ticks(job) == of_cronsim(" ".join(line.split()[:5]), "America/New_York")
            compared += 1
    assert compared == 11


def test_the_slow_way_agrees_about_days() -> None:
    """Both day fields restricted: either is enough, unless one begins with *."""

    def either(at: Minute) -> bool:
        return at.minute == 0 and at.hour == 0 and (at.day in (1, 15) or at.weekday == 5)

    def both(at: Minute) -> bool:
        return at.minute == 0 and at.hour == 4 and at.day % 2 == 1 and at.weekday == 1

    assert ticks(crontab("0 0 1,15 * 5 a\n").jobs[0]) == list(matching("UTC", either))
    assert ticks(crontab("0 4 */2 * 1 a\n").jobs[0]) == list(matching("UTC", both))


def test_defaults_differ_only_for_all_hours_without_a_star() -> None:
    """Debian's cron takes `0 0-23` for set times; ours for a clock job, and --defaults asks for ours."""
    text = "0 0-23 * * * a\n"
    plain = crontab(text, timezone="America/New_York").jobs[0]
    ours = crontab(text, timezone="America/New_York", wish=Wish(defaults=True)).jobs[0]
    assert plain.document["schedule"] | {} == {
        "cron": "0 0-23 * * *", "timezone": "America/New_York", "dst_gap": "shift", "dst_fold": "first",
    }  # fmt: skip
    assert len(ticks(ours)) == 8760
    assert len(ticks(plain)) == 8759, "the second 01:00 of the fold is not run"


def test_a_hand_over_loses_and_doubles_nothing() -> None:
    """The old cron has every tick before the instant, we have every tick from it on: also at the tick itself."""
    zone, around = "America/New_York", timedelta(days=2)
    for at in ("2027-03-14T07:00:00Z", "2027-06-01T06:30:00Z", "2027-11-07T05:30:00Z", "2027-11-07T06:30:00Z"):
        instant = datetime.fromisoformat(at)
        low, high = instant - around, instant + around
        wish = Wish(hand_over_ms=int(instant.timestamp() * 1000))
        for expression in ("30 2 * * *", "30 1 * * *", "*/15 * * * *", "0 0-23 * * *"):
            whole = of_cronsim(expression, zone, low, high)
            new = ticks(crontab(f"{expression} a\n", timezone=zone, wish=wish).jobs[0], low, high)
            assert [tick for tick in whole if tick < instant] + new == whole
            assert new
            assert len(new) < len(whole)
