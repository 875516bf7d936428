"""iCalendar files as Google, Outlook and public sites write them: which dates they hold, and what is refused."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcron import Cron, ScheduleError
from fleetcron.times.calendars import DayCalendar, DayRule
from fleetcron.times.ics import holidays_from_ics
from fleetcron.times.timetable import Timetable

EPOCH = date(1970, 1, 1)
DAY = timedelta(days=1)


def dates(calendar: DayCalendar, first: int = 2020, last: int = 2032) -> list[str]:
    every = (date(first, 1, 1) + n * DAY for n in range((date(last + 1, 1, 1) - date(first, 1, 1)).days))
    return [str(day) for day in every if (day - EPOCH).days in calendar]


def file(*lines: str) -> str:
    """A calendar file around the lines, as RFC 5545 wants it: CRLF at the end of each."""
    whole = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//EN", *lines, "END:VCALENDAR"]
    return "".join(f"{line}\r\n" for line in whole)


def event(*lines: str) -> str:
    """The file with one event; its first line is line 5 of the file."""
    return file("BEGIN:VEVENT", *lines, "END:VEVENT")


def read(*lines: str) -> list[str]:
    return dates(holidays_from_ics("feasts", event(*lines)))


GOOGLE = """\
BEGIN:VCALENDAR\r
PRODID:-//Google Inc//Google Calendar 70.9054//EN\r
VERSION:2.0\r
CALSCALE:GREGORIAN\r
METHOD:PUBLISH\r
X-WR-CALNAME:Feiertage in Deutschland\r
X-WR-TIMEZONE:UTC\r
X-WR-CALDESC:Feiertage und Gedenktage in Deutschland\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20261225\r
DTEND;VALUE=DATE:20261226\r
DTSTAMP:20261116T013000Z\r
UID:20261225_7hpj1ij3q5ifjkhj4bqt8b4nrs@google.com\r
CLASS:PUBLIC\r
CREATED:20240517T094500Z\r
DESCRIPTION:Gesetzlicher Feiertag\\nZum Ausblenden von Gedenktagen rufe die\r
  Google Kalender-Einstellungen auf > Feiertage in Deutschland: DTSTART;VALU\r
 E=DATE:20260101\r
LAST-MODIFIED:20240517T094500Z\r
SEQUENCE:0\r
STATUS:CONFIRMED\r
SUMMARY:1. Weihnachtstag\r
TRANSP:TRANSPARENT\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20260405\r
DTEND;VALUE=DATE:20260407\r
UID:ostern@google.com\r
SUMMARY:Ostern\\, beide Tage\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20260501\r
DTEND;VALUE=DATE:20260502\r
STATUS:CANCELLED\r
SUMMARY:Tag der Arbeit\r
END:VEVENT\r
END:VCALENDAR\r
"""

OUTLOOK = """\
\ufeffBEGIN:VCALENDAR\r
PRODID:-//Microsoft Corporation//Outlook 16.0 MIMEDIR//EN\r
VERSION:2.0\r
METHOD:PUBLISH\r
X-MS-OLK-FORCEINSPECTOROPEN:TRUE\r
BEGIN:VTIMEZONE\r
TZID:Eastern Standard Time\r
BEGIN:STANDARD\r
DTSTART:16011104T020000\r
RRULE:FREQ=YEARLY;BYDAY=1SU;BYMONTH=11\r
TZOFFSETFROM:-0400\r
TZOFFSETTO:-0500\r
END:STANDARD\r
BEGIN:DAYLIGHT\r
DTSTART:16010311T020000\r
RRULE:FREQ=YEARLY;BYDAY=2SU;BYMONTH=3\r
TZOFFSETFROM:-0500\r
TZOFFSETTO:-0400\r
END:DAYLIGHT\r
END:VTIMEZONE\r
BEGIN:VEVENT\r
CLASS:PUBLIC\r
CREATED:20260105T120000Z\r
DESCRIPTION:\\n\r
DTEND;TZID="Eastern Standard Time":20260703T170000\r
DTSTAMP:20260105T120000Z\r
DTSTART;TZID="Eastern Standard Time":20260702T090000\r
LAST-MODIFIED:20260105T120000Z\r
PRIORITY:5\r
SEQUENCE:0\r
SUMMARY;LANGUAGE=en-us:Plant shutdown\r
TRANSP:OPAQUE\r
UID:040000008200E00074C5B7101A82E00800000000\r
X-ALT-DESC;FMTTYPE=text/html:<html><body>\\n<p>BEGIN:VEVENT is only text her\r
\te</p></body></html>\r
X-MICROSOFT-CDO-BUSYSTATUS:OOF\r
BEGIN:VALARM\r
TRIGGER:-PT15M\r
ACTION:DISPLAY\r
DESCRIPTION:Reminder\r
DURATION:P3D\r
DTSTART:20200101\r
END:VALARM\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20240101\r
DTEND;VALUE=DATE:20240102\r
RRULE:FREQ=YEARLY\r
EXDATE;VALUE=DATE:20260101\r
SUMMARY:New Year\r
X-MICROSOFT-CDO-ALLDAYEVENT:TRUE\r
END:VEVENT\r
END:VCALENDAR\r
"""


def test_a_google_export():
    assert dates(holidays_from_ics("de", GOOGLE)) == ["2026-04-05", "2026-04-06", "2026-12-25"]


def test_an_outlook_export():
    owed = ["2024-01-01", "2025-01-01", "2026-07-02", "2026-07-03", "2027-01-01"]
    assert dates(holidays_from_ics("us", OUTLOOK), 2020, 2027) == owed


@pytest.mark.parametrize("newline", ["\r\n", "\n", "\r"])
def test_line_ends_of_all_kinds(newline: str):
    for text in (GOOGLE, OUTLOOK):
        calendar = holidays_from_ics("x", text.replace("\r\n", newline))
        assert dates(calendar) == dates(holidays_from_ics("x", text))


@settings(max_examples=15, derandomize=True, database=None, deadline=None)
@given(st.data())
def test_a_line_may_be_folded_anywhere(data: st.DataObject):
    lines = []
    for line in GOOGLE.replace("\r\n ", "").splitlines():
        cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(line) - 1)), max_size=3)))
        parts = [line[start:end] for start, end in zip([0, *cuts], [*cuts, len(line)], strict=True)]
        lines.append(f"\r\n{data.draw(st.sampled_from([' ', chr(9)]))}".join(parts))
    assert dates(holidays_from_ics("de", "\r\n".join(lines))) == ["2026-04-05", "2026-04-06", "2026-12-25"]


def test_the_calendar_is_one_of_holidays():
    calendar = holidays_from_ics("de", GOOGLE, "Europe/Berlin")
    assert (calendar.name, calendar.timezone) == ("de", "Europe/Berlin")
    timetable = Timetable(Cron("0 9 5 4 *", "Europe/Berlin"), calendars=[DayRule(calendar, on="next")])
    assert timetable.next_after(datetime(2026, 4, 1, tzinfo=UTC)) == datetime(2026, 4, 7, 7, tzinfo=UTC)


# --- what an event is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "owed"),
    [
        (["DTSTART;VALUE=DATE:20261225"], ["2026-12-25"]),
        (["dtstart;value=date:20261225"], ["2026-12-25"]),
        (["DTSTART:20261225"], ["2026-12-25"]),
        (["DTSTART;VALUE=DATE:20261231", "DTEND;VALUE=DATE:20270102"], ["2026-12-31", "2027-01-01"]),
        (["DTEND;VALUE=DATE:20261227", "DTSTART;VALUE=DATE:20261225"], ["2026-12-25", "2026-12-26"]),
        (["DTSTART;VALUE=DATE:20261225", "DTEND;VALUE=DATE:20261225"], ["2026-12-25"]),
        (["DTSTART;VALUE=DATE:20261225", "DURATION:P3D"], ["2026-12-25", "2026-12-26", "2026-12-27"]),
        (["DURATION:P3D", "DTSTART;VALUE=DATE:20261225"], ["2026-12-25", "2026-12-26", "2026-12-27"]),
        (["DTSTART;VALUE=DATE:20261201", "DURATION:P1W"], [f"2026-12-0{d}" for d in range(1, 8)]),
        (["DTSTART:20261225T090000", "DTEND:20261225T170000"], ["2026-12-25"]),
        (["DTSTART:20261224T200000", "DTEND:20261225T020000"], ["2026-12-24", "2026-12-25"]),
        (["DTSTART:20261224T000000", "DTEND:20261226T000000"], ["2026-12-24", "2026-12-25"]),
        (["DTSTART:20261225T090000Z", "DURATION:PT8H"], ["2026-12-25"]),
        (["DTSTART;TZID=Europe/Berlin:20261225T090000"], ["2026-12-25"]),
        (['DTSTART;TZID="(UTC+01:00) Amsterdam, Berlin, Bern":20261225T090000'], ["2026-12-25"]),
        (['DTSTART;X-NOTE="a;b:c";VALUE=DATE:20261225'], ["2026-12-25"]),
        (["DTSTART;VALUE=DATE:20240229"], ["2024-02-29"]),
        (["DTSTART:20261225", "RDATE;VALUE=DATE:20261227,20261229"], ["2026-12-25", "2026-12-27", "2026-12-29"]),
        (["DTSTART:20261225", "RDATE;VALUE=PERIOD:20261227T000000Z/PT1H"], ["2026-12-25", "2026-12-27"]),
        (["DTSTART:20261225", "RDATE:20261227", "RDATE:20261228", "EXDATE:20261227"], ["2026-12-25", "2026-12-28"]),
    ],
)  # fmt: skip
def test_the_dates_of_an_event(lines: list[str], owed: list[str]):
    assert read(*lines) == owed


@pytest.mark.parametrize(
    ("rule", "owed"),
    [
        ("FREQ=YEARLY", [2025, 2026, 2027, 2028, 2029, 2030, 2031, 2032]),
        ("FREQ=YEARLY;WKST=MO", [2025, 2026, 2027, 2028, 2029, 2030, 2031, 2032]),
        ("freq=yearly;interval=2", [2025, 2027, 2029, 2031]),
        ("FREQ=YEARLY;COUNT=3", [2025, 2026, 2027]),
        ("FREQ=YEARLY;UNTIL=20271224", [2025, 2026]),
        ("FREQ=YEARLY;UNTIL=20271225", [2025, 2026, 2027]),
        ("FREQ=YEARLY;UNTIL=20271225T235959Z", [2025, 2026, 2027]),
        ("FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=25", [2025, 2026, 2027, 2028, 2029, 2030, 2031, 2032]),
        ("FREQ=YEARLY;INTERVAL=4;COUNT=2", [2025, 2029]),
    ],
)
def test_yearly_repetition(rule: str, owed: list[int]):
    assert read("DTSTART;VALUE=DATE:20251225", f"RRULE:{rule}") == [f"{year}-12-25" for year in owed]


def test_a_leap_day_repeats_in_leap_years():
    assert read("DTSTART;VALUE=DATE:20200229", "RRULE:FREQ=YEARLY") == [f"{y}-02-29" for y in (2020, 2024, 2028, 2032)]
    assert read("DTSTART;VALUE=DATE:20200229", "RRULE:FREQ=YEARLY;COUNT=2") == ["2020-02-29", "2024-02-29"]


def test_repetition_has_exceptions_and_keeps_its_length():
    lines = ["DTSTART;VALUE=DATE:20251224", "DTEND;VALUE=DATE:20251227", "RRULE:FREQ=YEARLY;COUNT=3"]
    assert read(*lines, "EXDATE;VALUE=DATE:20261224") == [f"{y}-12-{d}" for y in (2025, 2027) for d in (24, 25, 26)]
    timed = ["DTSTART;TZID=Europe/Berlin:20251224T090000", "RRULE:FREQ=YEARLY;COUNT=2"]
    assert read(*timed, "EXDATE;TZID=Europe/Berlin:20251224T090000") == ["2026-12-24"]


def test_an_event_without_end_goes_on():
    calendar = holidays_from_ics("x", event("DTSTART;VALUE=DATE:20251225", "RRULE:FREQ=YEARLY"))
    assert dates(calendar, 2024, 2126) == [f"{year}-12-25" for year in range(2025, 2127)]


def test_one_day_of_a_repetition_may_be_moved_or_cancelled():
    """A second event with the same UID and a RECURRENCE-ID stands for that one day."""
    master = ["BEGIN:VEVENT", "UID:1@x", "DTSTART;VALUE=DATE:20250704", "RRULE:FREQ=YEARLY;COUNT=3", "END:VEVENT"]
    moved = [
        "BEGIN:VEVENT",
        "UID:1@x",
        "RECURRENCE-ID;VALUE=DATE:20260704",
        "DTSTART;VALUE=DATE:20260703",
        "END:VEVENT",
    ]
    other = ["BEGIN:VEVENT", "UID:2@x", "DTSTART;VALUE=DATE:20260704", "STATUS:CANCELLED", "END:VEVENT"]
    owed = ["2025-07-04", "2026-07-03", "2027-07-04"]
    for lines in ([*master, *moved, *other], [*moved, *other, *master]):
        assert dates(holidays_from_ics("x", file(*lines))) == owed
    cancelled = [*moved[:-1], "STATUS:CANCELLED", "END:VEVENT"]
    assert dates(holidays_from_ics("x", file(*master, *cancelled))) == ["2025-07-04", "2027-07-04"]


def test_what_is_not_an_event_is_not_read():
    """Tasks, journals, zones, and alarms inside an event have dates of their own."""
    lines = [
        "BEGIN:VTODO", "DTSTART:20260101", "END:VTODO",
        "BEGIN:VEVENT", "BEGIN:VALARM", "DTSTART:20260102", "BEGIN:X-DEEPER", "DTSTART:20260103", "END:X-DEEPER",
        "RRULE:FREQ=HOURLY", "END:VALARM", "DTSTART:20261225", "END:VEVENT",
        "BEGIN:VJOURNAL", "DTSTART:20260104", "RRULE:FREQ=DAILY", "END:VJOURNAL",
    ]  # fmt: skip
    assert dates(holidays_from_ics("x", file(*lines))) == ["2026-12-25"]


def test_all_events_cancelled_leave_an_empty_calendar():
    assert read("DTSTART:20261225", "STATUS:CANCELLED") == []


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "mistake"),
    [
        (["SUMMARY:x", "DTSTART:2026-12-25"], "calendar feasts, line 6: '2026-12-25' is not a date"),
        (["DTSTART:20260229"], "calendar feasts, line 5: '20260229' is not a date"),
        (["DTSTART:20261301"], "calendar feasts, line 5: '20261301' is not a date"),
        (["DTSTART:00000101"], "calendar feasts, line 5: '00000101' is not a date"),
        (["DTSTART:"], "calendar feasts, line 5: '' is not a date"),
        (["DTSTART:20261225", "DTEND:soon"], "calendar feasts, line 6: 'soon' is not a date"),
        (["DTSTART:20261225", "RDATE:20261226,x"], "calendar feasts, line 6: 'x' is not a date"),
        (["DTSTART:20261225", "EXDATE:x"], "calendar feasts, line 6: 'x' is not a date"),
        (["DTSTART:20261225", "DURATION:3 days"], "calendar feasts, line 6: '3 days' is not a duration"),
        (["DTSTART:20261225", "RRULE:FREQ=DAILY"], "calendar feasts, line 6: the repetition 'FREQ=DAILY' is not read"),
        (["DTSTART:20261225", "RRULE:FREQ=YEARLY;BYDAY=4TH;BYMONTH=11"], "calendar feasts, line 6: the repetition"),
        (["DTSTART:20261225", "RRULE:FREQ=YEARLY;BYEASTER=0"], "calendar feasts, line 6: the repetition"),
        (["DTSTART:20261225", "RRULE:INTERVAL=2"], "calendar feasts, line 6: the repetition"),
        (["DTSTART:20261225", "RRULE:FREQ=YEARLY;UNTIL=soon"], "calendar feasts, line"),
        (["DTSTART:20261225", "RRULE:FREQ=YEARLY;INTERVAL=0"], "calendar feasts, line"),
        (["DTSTART:20261225", "RRULE:FREQ=YEARLY;INTERVAL=x"], "calendar feasts, line"),
        (["DTSTART:20261225", "RRULE:FREQ=YEARLY;BYMONTH=1,7"], "calendar feasts, line"),
        (["DTSTART:20261225", "RRULE:FREQ=YEARLY;BYMONTHDAY=-1"], "calendar feasts, line"),
        (["DTSTART:20261225", "EXRULE:FREQ=YEARLY;INTERVAL=2"], "calendar feasts, line 6: the repetition"),
        (["SUMMARY:no start"], "calendar feasts, line 4: the event has no DTSTART"),
        (["DTSTART:20260101", "DTEND:20280101"], "calendar feasts, line 4: the event lasts for 730 days"),
    ],
)  # fmt: skip
def test_what_would_be_read_wrong_is_refused_with_its_line(lines: list[str], mistake: str):
    with pytest.raises(ScheduleError) as refusal:
        holidays_from_ics("feasts", event(*lines))
    assert refusal.value.mistake.startswith(mistake)


def test_the_line_is_that_of_the_file():
    """Folded lines count, and so does everything before; a form feed or a line separator inside a text ends no line."""
    for text in ("a folded", "a form\ffeed", "a line\u2028separator", "a next\x85line"):
        with pytest.raises(ScheduleError, match="line 7: 'x' is not a date"):
            holidays_from_ics("feasts", event(f"SUMMARY:{text}", " summary", "DTSTART:x"))


def test_a_file_that_was_cut_off_is_refused():
    """The last event of a broken download must not be lost in silence."""
    whole = file("BEGIN:VEVENT", "DTSTART:20261224", "END:VEVENT", "BEGIN:VEVENT", "DTSTART:20261225", "END:VEVENT")
    cut = whole[: whole.rindex("END:VEVENT")]
    with pytest.raises(ScheduleError, match="line 7"):
        holidays_from_ics("feasts", cut)


@pytest.mark.parametrize("text", ["", "\ufeff", "hello", "<html>404</html>", file(), file("BEGIN:VTODO", "END:VTODO")])
def test_a_file_without_events_is_refused(text: str):
    with pytest.raises(ScheduleError, match="calendar feasts: no event found"):
        holidays_from_ics("feasts", text)


def test_a_bad_zone_is_refused():
    with pytest.raises(ScheduleError, match="EST is ambiguous"):
        holidays_from_ics("de", GOOGLE, "EST")
