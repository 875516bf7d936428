"""Calendars as documents: what they mean, what they need, and their canonical text."""

import json
from datetime import UTC, datetime

import pytest

from fleetcron.errors import DefinitionError, ScheduleError
from fleetcron.model.almanac import Part
from fleetcron.model.calendar import CalendarDocument, RepeatedWindow, local_almanac
from fleetcron.model.reading import read_calendar, read_definitions, read_yaml
from fleetcron.times.calendars import DayCalendar
from fleetcron.times.days import number
from fleetcron.times.windows import Blackout
from fleetcron.times.zones import zone
from tests.model.documents import CALENDARS, job
from tests.times.examples import AMOUNT, for_all

ICS = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20261126\nEND:VEVENT\nEND:VCALENDAR\n"


@AMOUNT
def test_the_body_keeps_everything_but_tenant_and_name(amount: float) -> None:
    @for_all(100 * amount, CALENDARS)
    def law(calendar: CalendarDocument) -> None:
        body = calendar.body()
        assert CalendarDocument.from_body(calendar.tenant, calendar.name, body) == calendar
        assert CalendarDocument.from_body("t", "n", body).body() == body
        calendar.build(zone)


def test_order_and_repetition_do_not_make_another_calendar() -> None:
    one = CalendarDocument("us", holidays=("12-25", "01-01", "12-25"), weekdays=("fri", "MON"))
    other = CalendarDocument("us", holidays=("01-01", "12-25"), weekdays=("MON", "FRI", "MON"))
    assert one == other
    assert one.body() == other.body()


def test_holidays_and_business_days_are_days_and_the_rest_are_windows() -> None:
    days = CalendarDocument("us", holidays=("12-25",), timezone="America/New_York").build(zone)
    assert isinstance(days, DayCalendar)
    assert number(2026, 12, 25) in days
    assert number(2026, 12, 24) not in days
    assert days.zone == zone("America/New_York")
    work = CalendarDocument("work", weekdays=("MON", "FRI"), holidays=("2026-12-25",)).build(zone)
    assert isinstance(work, DayCalendar)
    assert [number(2026, 12, day) in work for day in (18, 21, 22, 25)] == [True, True, False, False]
    freeze = CalendarDocument("freeze", windows=((0, 5),), repeated=(RepeatedWindow("0 2 * * *", "UTC", 1000),)).build(
        zone
    )
    assert isinstance(freeze, Blackout)
    assert freeze.around(3) == (0, 5)
    assert freeze.around(2 * 3_600_000) == (7_200_000, 7_201_000)


def test_it_asks_for_the_fleets_tables_and_never_for_utc() -> None:
    calendar = CalendarDocument(
        "freeze", repeated=(RepeatedWindow("0 2 * * *", "UTC", 1000), RepeatedWindow("0 3 * * *", "Asia/Tokyo", 1000))
    )
    assert calendar.zones() == ["Asia/Tokyo"]
    asked: list[str] = []
    calendar.build(lambda name: (asked.append(name), zone(name))[1])
    assert asked == ["Asia/Tokyo"]
    assert CalendarDocument("us", holidays=("12-25",), timezone="UTC").zones() == []


@pytest.mark.parametrize(
    ("calendar", "why"),
    [
        (CalendarDocument("x"), "is empty"),
        (CalendarDocument("x", holidays=("12-25",), windows=((0, 1),)), "both days and windows"),
        (CalendarDocument("x", weekdays=("XMAS",)), "not a weekday"),
        (CalendarDocument("x", repeated=(RepeatedWindow("* * * * *", "UTC", 60_000),)), "never end"),
    ],
)
def test_one_that_cannot_be_is_refused(calendar: CalendarDocument, why: str) -> None:
    with pytest.raises(ScheduleError, match=why):
        calendar.build(zone)


def test_an_almanac_of_the_nodes_own_tables() -> None:
    us = CalendarDocument("us", "acme", holidays=("12-25",))
    almanac = local_almanac([Part("zone", "", "Asia/Tokyo"), Part("calendar", "acme", "us")], [us])
    assert almanac.zone("Asia/Tokyo") == zone("Asia/Tokyo")
    assert isinstance(almanac.calendar("acme", "us"), DayCalendar)
    with pytest.raises(ScheduleError, match="there is no calendar"):
        local_almanac([Part("calendar", "acme", "eu")], [us]).calendar("acme", "eu")
    with pytest.raises(ScheduleError, match="did you mean"):
        local_almanac([Part("zone", "", "Asia/Tokio")])


def test_a_calendar_of_a_file() -> None:
    raw = read_yaml(
        """
        calendars:
          - {name: freeze, timezone: Asia/Tokyo, repeated: [{cron: 0 2 * * SUN, for: 2h}],
             windows: [{from: 2026-12-20T00:00:00Z, to: 2027-01-03T00:00:00+01:00}]}
          - {name: us, holidays: [12-25, 2026-11-26]}
        """,
        "jobs.yaml",
    )
    freeze, us = read_definitions(raw).calendars
    start = int(datetime(2026, 12, 20, tzinfo=UTC).timestamp() * 1000)
    end = int(datetime(2027, 1, 2, 23, tzinfo=UTC).timestamp() * 1000)
    assert freeze == CalendarDocument(
        "freeze", windows=((start, end),), repeated=(RepeatedWindow("0 2 * * SUN", "Asia/Tokyo", 7_200_000),)
    )
    assert us == CalendarDocument("us", holidays=("12-25", "2026-11-26"))
    assert json.loads(us.body()) == {"holidays": ["12-25", "2026-11-26"]}


def test_dates_as_python_has_them_are_dates() -> None:
    from_python = read_calendar({"name": "us", "holidays": [datetime(2026, 11, 26, tzinfo=UTC).date(), "12-25"]})
    assert from_python.holidays == ("12-25", "2026-11-26")


def test_the_dates_of_an_ics_file_are_written_into_the_calendar() -> None:
    read: list[str] = []
    found = read_calendar(
        {"name": "us", "ics": "us.ics", "holidays": ["12-25"]}, ics=lambda path: (read.append(path), ICS)[1]
    )
    assert read == ["us.ics"]
    assert found == CalendarDocument("us", holidays=("12-25", "2026-11-26"))


def _missing(path: str) -> str:
    raise FileNotFoundError(2, "No such file or directory", path)


@pytest.mark.parametrize(
    ("ics", "why"),
    [(None, "files are not read here"), (_missing, "No such file"), (lambda _: "BEGIN:VEVENT", "no END:VEVENT")],
)
def test_an_ics_file_that_cannot_be_read_is_a_mistake_with_its_place(ics, why: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        read_definitions({"calendars": [{"name": "us", "ics": "us.ics"}]}, ics=ics)
    (mistake,) = caught.value.mistakes
    assert mistake.pointer == "/calendars/0/ics"
    assert why in str(mistake)


@pytest.mark.parametrize(
    ("calendar", "pointers"),
    [
        ({"name": "x"}, [""]),
        ({"name": "x", "holidays": ["12-25"],
          "windows": [{"from": "2026-01-01T00:00:00Z", "to": "2027-01-01T00:00:00Z"}]}, [""]),
        ({"name": "x", "windows": [{"from": "2027-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}]}, ["/windows/0/to"]),
        ({"name": "x", "holidays": ["13-25", 5, "2026-02-30"]}, ["/holidays/0", "/holidays/1", "/holidays/2"]),
        ({"name": "x", "weekdays": ["MON", "FUNDAY"]}, ["/weekdays/1"]),
        ({"name": "x", "repeated": [{"cron": "x", "for": "2x"}, {}]},
         ["/repeated/0/cron", "/repeated/0/for", "/repeated/1/cron", "/repeated/1/for"]),
        ({"name": "x", "repeated": [{"cron": "* * * * *", "for": "1m"}]}, [""]),
    ],
)  # fmt: skip
def test_every_mistake_of_a_calendar(calendar: dict, pointers: list[str]) -> None:
    with pytest.raises(DefinitionError) as caught:
        read_calendar(calendar)
    assert [mistake.pointer for mistake in caught.value.mistakes] == pointers


def test_a_job_must_use_a_calendar_as_it_can_be_used() -> None:
    calendars = [
        {"name": "days", "holidays": ["12-25"]},
        {"name": "windows", "repeated": [{"cron": "0 2 * * *", "for": "1h"}]},
        {"name": "always", "weekdays": ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]},
        {"name": "wrong", "holidays": ["xmas"]},
    ]
    uses = [
        [{"name": "days", "on": "defer"}],
        [{"name": "windows", "on": "next"}, {"name": "windows", "on": "skip", "use": "require"}],
        ["always"],
        ["somewhere-else", "wrong"],
        [{"name": "days", "on": "next"}],
    ]
    jobs = [job(name=f"j{at}", calendars=each) for at, each in enumerate(uses)]
    jobs[4]["schedule"] = {"every": "1h"}
    with pytest.raises(DefinitionError) as caught:
        read_definitions({"jobs": jobs, "calendars": calendars})
    assert [mistake.pointer for mistake in caught.value.mistakes] == [
        "/calendars/3/holidays/0",
        "/jobs/0/calendars/0/on",
        "/jobs/1/calendars/0/on",
        "/jobs/1/calendars/1",
        "/jobs/1/calendars/1/use",
        "/jobs/2/calendars",  # leaves no day
        "/jobs/4/calendars",  # an interval has no time of day to move
    ]


def test_calendars_that_exist_already_are_known() -> None:
    always = CalendarDocument("always", weekdays=("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))
    document = {"jobs": [job(calendars=["always"])]}
    assert read_definitions(document).jobs[0].calendars[0].name == "always"
    with pytest.raises(DefinitionError, match="never fires"):
        read_definitions(document, known_calendars=[always])
