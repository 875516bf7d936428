"""Zone data: the pinned tzdata package and nothing else, as tables with a hash.

What the tables say is held against zoneinfo, another reader of TZif, reading the same files of the package
(`ZoneInfo.from_file`, so it never sees the machine's own).
"""

import json
import os
import subprocess
import sys
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import resources
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from fleetcron import Cron, Once, ScheduleError
from fleetcron.times import zones
from fleetcron.times.zone import Zone
from fleetcron.times.zones import ABBREVIATIONS, near_names, zone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PACKAGE = Path(str(resources.files("tzdata")))
YEAR = 31_556_952  # seconds


def second(*parts: int) -> int:
    return int((datetime(*parts, tzinfo=UTC) - EPOCH).total_seconds())


def file_of(name: str) -> bytes:
    return PACKAGE.joinpath("zoneinfo", *name.split("/")).read_bytes()


def different() -> Iterator[str]:
    """One name for each file that differs from the others: 590 names are 350 files."""
    seen: set[bytes] = set()
    for name in zones.names():
        data = file_of(name)
        if data not in seen:
            seen.add(data)
            yield name


DIFFERENT = list(different())


def read_by_zoneinfo(name: str) -> ZoneInfo:
    with PACKAGE.joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


# --- the tables against another reader -------------------------------------------------------------------------------


def test_every_zone_has_the_offsets_that_zoneinfo_reads():
    """1900-2100: right before and at every change of 1900-2060, and twice a year besides, at odd seconds."""
    steps = range(second(1900, 1, 1), second(2100, 1, 1), YEAR // 2 + 12_347)
    wrong = []
    for name in DIFFERENT:
        table, info = zone(name), read_by_zoneinfo(name)
        changes = [here.start for _, here in table.changes_between(second(1900, 1, 1), second(2060, 1, 1))]
        probes = [*steps, *changes, *(change - 1 for change in changes)]
        for at in probes:
            owed = info.fromutc((EPOCH + timedelta(seconds=at)).replace(tzinfo=info)).utcoffset()
            if table.offset_at(at) != owed.total_seconds():
                wrong.append((name, at, table.offset_at(at), owed))
    assert wrong == []


def test_no_change_is_missed():
    """Every change that zoneinfo shows between two days of 1900-2100 is in the table, to the second."""
    for name in [
        "Africa/Casablanca",
        "America/New_York",
        "Antarctica/Troll",
        "Asia/Gaza",
        "Europe/Dublin",
        "Pacific/Apia",
    ]:
        table, info = zone(name), read_by_zoneinfo(name)
        found = {here.start for _, here in table.changes_between(second(1900, 1, 1), second(2100, 1, 1))}

        def offset(at: int, info: ZoneInfo = info) -> timedelta:
            return info.fromutc((EPOCH + timedelta(seconds=at)).replace(tzinfo=info)).utcoffset()

        for low in range(second(1970, 1, 1), second(2090, 1, 1), 3 * 86400):
            high = low + 3 * 86400
            if offset(low) == offset(high):
                continue
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == offset(low) else (low, middle)
            assert high in found
            found.remove(high)
        assert not [at for at in found if second(1970, 1, 1) < at < second(2090, 1, 1)]


def test_changes_are_never_closer_than_the_sum_of_their_shifts():
    """All zones, all history and 60 years of the rules: so a local time is touched by one change only."""
    close = []
    for name in DIFFERENT:
        before, shift = None, 0
        for old, here in zone(name).changes_between(-(1 << 39), second(2100, 1, 1)):
            size = abs(here.offset - old.offset)
            assert size
            if before is not None and here.start - before < size + shift:
                close.append((name, here.start))
            before, shift = here.start, size
    assert close == []


def test_changes_are_a_week_apart_since_1970():
    """6.9 days, says time.md."""
    starts = ([here.start for _, here in zone(name).changes_between(0, second(2038, 1, 1))] for name in DIFFERENT)
    shortest = min(later - earlier for row in starts for earlier, later in pairwise(row))
    assert 6.8 * 86400 < shortest < 7 * 86400


def test_far_future_follows_the_rule():
    """The last Sunday of March, for ever."""
    berlin = zone("Europe/Berlin")
    for year in (2038, 2199, 2201, 2599, 2601, 5000, 9998):
        march = [at for at in (second(year, 3, day, 1) for day in range(25, 32)) if (at // 86400 + 4) % 7 == 0]
        assert len(march) == 1
        assert (berlin.offset_at(march[0] - 1), berlin.offset_at(march[0])) == (3600, 7200)


@pytest.mark.parametrize(
    "rule",
    [
        "EST5EDT,M3.2.0,M11.1.0",
        "<-03>3<-02>,J60/0,J300/1",  # March 1st, in leap years too
        "IST-2IDT,M3.4.4/26,M10.5.0",
        "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
        "IST-1GMT0,M10.5.0,M3.5.0/1",  # winter time is the exception
        "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
        "AEST-10AEDT,M10.1.0,M4.1.0/3",
    ],
)
def test_rules_of_all_forms(rule: str):
    """Julian days, times before midnight and after 24:00: as zoneinfo reads them, to the second."""
    data = file_of("UTC").replace(b"UTC0", rule.encode())
    table, info = Zone.from_tzif("Made/Up", data), ZoneInfo.from_file(BytesIO(data), key="Made/Up")
    changes = [here.start for _, here in table.changes_between(second(1972, 1, 1), second(2100, 1, 1))]
    probes = [*range(second(1972, 1, 1), second(2100, 1, 1), 3_000_017), *changes, *(change - 1 for change in changes)]
    for at in probes:
        owed = info.fromutc((EPOCH + timedelta(seconds=at)).replace(tzinfo=info)).utcoffset()
        assert table.offset_at(at) == owed.total_seconds(), EPOCH + timedelta(seconds=at)


@pytest.mark.parametrize(
    ("day", "common", "leap"),
    [("J59", "02-28", "02-28"), ("J60", "03-01", "03-01"), ("58", "02-28", "02-28"), ("59", "03-01", "02-29")],
)
def test_days_of_the_year(day: str, common: str, leap: str):
    """J60 is March 1st in every year, 59 is the sixtieth day. (zoneinfo is wrong about J59 and about plain numbers.)"""
    table = Zone.from_tzif("Made/Up", file_of("UTC").replace(b"UTC0", f"AAA0BBB,{day}/0,J300/1".encode()))
    for year, date in ((2023, common), (2024, leap), (2025, common)):
        begins = [here.start for _, here in table.changes_between(second(year, 1, 1), second(year, 6, 1))]
        assert [f"{EPOCH + timedelta(seconds=at):%m-%d}" for at in begins] == [date]


# --- names -----------------------------------------------------------------------------------------------------------


def test_the_names_are_those_of_the_package():
    listed = set(PACKAGE.joinpath("zones").read_text().split())
    assert listed - set(zones.names()) == {"CET", "EET", "EST", "Factory", "HST", "MET", "MST", "WET"} & listed
    assert set(zones.names()) <= listed
    assert list(zones.names()) == sorted(zones.names())
    assert {"UTC", "Etc/UTC", "GMT", "America/New_York", "US/Eastern", "EST5EDT"} <= set(zones.names())


def test_the_release_is_that_of_the_package():
    metadata = PACKAGE.joinpath("__init__.py").read_text()
    assert f'"{zones.release()}"' in metadata


@pytest.mark.parametrize("name", sorted(ABBREVIATIONS))
def test_abbreviations_are_refused_with_the_zone_that_is_meant(name: str):
    usual = ABBREVIATIONS[name]
    assert usual in zones.names()
    for written in (name, name.lower()):
        with pytest.raises(ScheduleError) as refusal:
            zone(written)
        assert refusal.value.mistake == f"{written} is ambiguous: use {usual}"


def test_est_is_refused_wherever_a_zone_is_given():
    for make in (lambda: Cron("0 0 * * *", "EST"), lambda: Once("2026-01-01 00:00", "EST")):
        with pytest.raises(ScheduleError, match=r"^EST is ambiguous: use America/New_York;"):
            make()


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("X", None),
        ("", None),
        ("America/NewYork", "did you mean America/New_York?"),
        ("america/new_york", "did you mean America/New_York?"),
        ("America/New York", "did you mean America/New_York?"),
        ("Europe/Brlin", "did you mean Europe/Berlin or Europe/Dublin or Europe/Lisbon?"),
        ("Berlin", "did you mean Europe/Berlin?"),
        ("berlin", "did you mean Europe/Berlin?"),
        ("Asia/Calcuta", "did you mean Asia/Calcutta?"),
        ("Factory", None),
        ("UTC+2", "an offset is not a zone: it knows no summer time"),
        ("+02:00", "an offset is not a zone: it knows no summer time"),
        ("GMT-0530", "an offset is not a zone: it knows no summer time"),
        ("../../etc/passwd", None),
        ("/etc/localtime", None),
        ("America/../America/New_York", None),
        ("America", None),
        ("America/New_York\x00", "did you mean America/New_York?"),
        ("America/New_York ", "did you mean America/New_York?"),
        ("Z" * 10_000, None),
    ],
)
def test_other_names_are_refused_with_near_ones(written: str, hint: str | None):
    with pytest.raises(ScheduleError) as refusal:
        zone(written)
    shown = written[:64] or "an empty name"
    assert refusal.value.mistake == f"Invalid timezone: {shown}. Use IANA format (e.g., America/New_York)"
    assert hint is None or refusal.value.hint == hint
    assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize("odd", [None, 5, 1.5, b"UTC", [], ("UTC",), UTC, ZoneInfo])
def test_odd_zones_are_refused(odd: object):
    for make in (lambda: zone(odd), lambda: Cron("0 0 * * *", odd)):
        with pytest.raises(ScheduleError, match="Invalid timezone"):
            make()


def test_every_near_name_can_be_used():
    for written in ("new york", "Londn", "Pacific/Auckland2", "kolkata", "sao paulo", "Ho Chi Minh"):
        assert near_names(written)
        assert set(near_names(written)) <= set(zones.names())


# --- tables ----------------------------------------------------------------------------------------------------------


def test_a_table_comes_back_as_it_was_for_every_zone():
    for name in DIFFERENT:
        table = zone(name)
        again = Zone.load("another/name", table.dump())
        assert again == table
        assert hash(again) == hash(table)
        assert again.hash == table.hash
        assert again.dump() == table.dump()
        assert again.name == "another/name"
        for at in range(second(1890, 1, 1), second(2120, 1, 1), 11 * YEAR):
            assert again.offset_at(at) == table.offset_at(at)


def test_equal_offsets_are_equal_whatever_the_name_and_the_file():
    assert zone("US/Eastern") == zone("America/New_York")
    assert zone("US/Eastern").hash == zone("America/New_York").hash
    assert zone("Etc/UTC") == zone("UTC") == zone("Etc/UCT")
    assert zone("Europe/Berlin") != zone("Europe/Paris")  # they agree today, not in 1940
    assert zone("UTC") != zone("Africa/Abidjan")
    assert zone("UTC") != "UTC"
    assert len({zone(name).hash for name in DIFFERENT}) <= len(DIFFERENT)


def test_the_hash_does_not_depend_on_how_much_of_the_rule_a_file_spells_out():
    """A file may list the changes up to 2037 (`zic -b fat`), or the odd ones only (`slim`): the ticks are the same."""
    name = "America/New_York"
    data = file_of(name)
    slim = Zone.from_tzif(name, data)
    assert Zone.from_tzif(name, fattened(data)) == slim
    assert Zone.from_tzif(name, fattened(data)).hash == slim.hash


def fattened(data: bytes) -> bytes:
    """The same file with the changes of 2027-2037 written out, as `zic -b fat` does."""
    table = Zone.from_tzif("x", data)
    footer = data.rstrip(b"\n").rpartition(b"\n")[2]
    offsets = sorted({table.first, *(offset for _, offset in table.changes)}, key=lambda o: o != table.first)
    listed = table.changes
    head = b"TZif2" + bytes(15)
    empty = head + b"".join(n.to_bytes(4) for n in (0, 0, 0, 0, 1, 1)) + bytes(6) + b"\0"
    counts = (0, 0, 0, len(listed), len(offsets), 1)
    body = head + b"".join(n.to_bytes(4) for n in counts)
    body += b"".join(at.to_bytes(8, signed=True) for at, _ in listed)
    body += bytes(offsets.index(offset) for _, offset in listed)
    body += b"".join(offset.to_bytes(4, signed=True) + bytes(2) for offset in offsets) + b"\0"
    return empty + body + b"\n" + footer + b"\n"


def table_of(name: str) -> dict[str, object]:
    return json.loads(zone(name).dump())


def doctored(name: str, **changes: object) -> Zone:
    return Zone.load(name, json.dumps({**table_of(name), **changes}))


def test_a_doctored_table_has_another_hash():
    table = table_of("America/New_York")
    moved = [[at + 3600, offset] for at, offset in table["changes"]]
    summer = [table["rule"][0], -18_000 + 1800, *table["rule"][2:]]
    hashes = {
        zone("America/New_York").hash,
        doctored("America/New_York", changes=moved).hash,
        doctored("America/New_York", changes=table["changes"][:-1]).hash,
        doctored("America/New_York", first=-17_000).hash,
        doctored("America/New_York", rule=summer).hash,
        doctored("America/New_York", rule=[-18_000, -18_000]).hash,
    }
    assert len(hashes) == 6


def test_a_schedule_is_computed_with_the_table_that_it_is_given():
    """A fleet that plans with a stored table in which New York gave up summer time after 2026."""
    table = table_of("America/New_York")
    kept = [change for change in table["changes"] if change[0] < second(2027, 1, 1)]
    stored = Zone.load("America/New_York", json.dumps({**table, "changes": kept, "rule": [-18_000, -18_000]}))
    after = datetime(2027, 6, 30, tzinfo=UTC)
    with_package, with_stored = Cron("0 9 * * *", "America/New_York"), Cron("0 9 * * *", stored)
    assert with_package.next_after(after) == datetime(2027, 6, 30, 13, tzinfo=UTC)
    assert with_stored.next_after(after) == datetime(2027, 6, 30, 14, tzinfo=UTC)
    assert with_stored.timezone == "America/New_York"
    assert with_stored != with_package
    assert Cron("0 9 * * *", Zone.load("other", zone("America/New_York").dump())) == with_package
    before = datetime(2026, 6, 30, tzinfo=UTC)
    assert with_stored.next_after(before) == with_package.next_after(before)
    gap = Once("2027-03-14 02:30", stored, dst_gap="skip")  # exists in that table
    assert gap.at == datetime(2027, 3, 14, 7, 30, tzinfo=UTC)


NY_RULE = [-18_000, -14_400, ["M", 3, 2, 0, 7200], ["M", 11, 1, 0, 7200]]
BAD_TABLES = {
    "nothing": "",
    "not JSON": "{",
    "null": "null",
    "a list": "[]",
    "a number": "5",
    "no first": '{"changes":[],"rule":[0,0]}',
    "no changes": '{"first":0,"rule":[0,0]}',
    "no rule": '{"first":0,"changes":[]}',
    "first is a word": '{"first":"noon","changes":[],"rule":[0,0]}',
    "first is endless": '{"first":Infinity,"changes":[],"rule":[0,0]}',
    "first is two days": '{"first":172800,"changes":[],"rule":[0,0]}',
    "a change of three": '{"first":0,"changes":[[1,2,3]],"rule":[0,0]}',
    "a change of nothing": '{"first":0,"changes":[[100,0]],"rule":[0,0]}',
    "a change by two days": '{"first":0,"changes":[[100,172800]],"rule":[0,0]}',
    "changes in disorder": '{"first":0,"changes":[[900000,3600],[100,0]],"rule":[0,0]}',
    "changes too close": '{"first":0,"changes":[[0,3600],[7199,0]],"rule":[0,0]}',
    "a rule of nothing": '{"first":0,"changes":[],"rule":[]}',
    "a rule of one": '{"first":0,"changes":[],"rule":[0]}',
    "a rule of three": '{"first":0,"changes":[],"rule":[0,0,["M",3,2,0,7200]]}',
    "a rule of words": '{"first":0,"changes":[],"rule":["a","b"]}',
    "a rule day of four": json.dumps({"first": 0, "changes": [], "rule": [0, 3600, ["M", 3, 2, 0], NY_RULE[3]]}),
    "month 13": json.dumps({"first": 0, "changes": [], "rule": [0, 3600, ["M", 13, 2, 0, 7200], NY_RULE[3]]}),
    "month as a word": json.dumps(
        {"first": 0, "changes": [], "rule": [0, 3600, ["M", "March", 2, 0, 7200], NY_RULE[3]]}
    ),
    "week 0": json.dumps({"first": 0, "changes": [], "rule": [0, 3600, ["M", 3, 0, 0, 7200], NY_RULE[3]]}),
    "weekday 7": json.dumps({"first": 0, "changes": [], "rule": [0, 3600, ["M", 3, 2, 7, 7200], NY_RULE[3]]}),
    "day 367": json.dumps({"first": 0, "changes": [], "rule": [0, 3600, ["N", 0, 0, 367, 7200], NY_RULE[3]]}),
    "an unknown form": json.dumps({"first": 0, "changes": [], "rule": [0, 3600, ["Q", 3, 2, 0, 7200], NY_RULE[3]]}),
    "a summer of two days' offset": json.dumps({"first": 0, "changes": [], "rule": [0, 172_800, *NY_RULE[2:]]}),
    "a summer without length": json.dumps(
        {"first": -18_000, "changes": [], "rule": [-18_000, -14_400, ["M", 3, 2, 0, 7200], ["M", 3, 2, 0, 10_800]]}
    ),
}


@pytest.mark.parametrize("table", BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_bad_table_is_refused(table: str):
    with pytest.raises(ScheduleError, match="the zone table of Nowhere/Land"):
        Zone.load("Nowhere/Land", table)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"TZif", b"hello world", file_of("UTC")[:50], file_of("America/New_York")[:400],
        b"TZif\x00" + file_of("UTC")[5:], file_of("UTC").replace(b"UTC0", b"????"),
    ],
    ids=["nothing", "magic alone", "text", "cut in the header", "cut in the data", "version 1", "odd rule"],
)  # fmt: skip
def test_a_bad_zone_file_is_refused(data: bytes):
    with pytest.raises(ScheduleError, match="the zone file of Nowhere/Land cannot be read"):
        Zone.from_tzif("Nowhere/Land", data)


# --- the machine's own zone data is never looked at ------------------------------------------------------------------

ASKED = ("next", "30 2 * * *", "--timezone", "America/New_York", "--after", "2027-03-13T12:00:00Z", "-n", "3")


@pytest.fixture
def doctored_folder(tmp_path: Path) -> Path:
    """A folder of zone files in which New York keeps UTC, as a machine may have."""
    for name in ("America/New_York", "US/Eastern", "Europe/Berlin", "UTC"):
        path = tmp_path.joinpath("zoneinfo", *name.split("/"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file_of("UTC"))
    return tmp_path / "zoneinfo"


def said(**environment: str) -> str:
    """What `fleetcron next` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "fleetcron", *ASKED],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


def test_a_doctored_folder_of_zones_changes_nothing(doctored_folder: Path):
    environment = {"PYTHONTZPATH": str(doctored_folder), "TZDIR": str(doctored_folder), "TZ": "America/New_York"}
    # the folder is good enough to mislead zoneinfo, or this proves nothing
    probe = "import datetime, zoneinfo; print(datetime.datetime(2027, 7, 1, tzinfo=zoneinfo.ZoneInfo('US/Eastern')))"
    misled = subprocess.run(
        [sys.executable, "-c", probe], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    assert misled.stdout == "2027-07-01 00:00:00+00:00\n"
    plain = said()
    assert "2027-03-14T07:00:00Z" in plain
    assert said(**environment) == plain


def test_resetting_the_path_of_zoneinfo_changes_nothing(doctored_folder: Path):
    owed = zone("America/New_York").hash
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath([str(doctored_folder)])
    zones._load.cache_clear()
    try:
        ZoneInfo.clear_cache()
        assert datetime(2027, 7, 1, tzinfo=ZoneInfo("America/New_York")).utcoffset() == timedelta(0)
        assert zone("America/New_York").hash == owed
        tick = Cron("0 12 * * *", "America/New_York").next_after(datetime(2027, 7, 1, tzinfo=UTC))
        assert tick == datetime(2027, 7, 1, 16, tzinfo=UTC)
    finally:
        zoneinfo.reset_tzpath(before)
        ZoneInfo.clear_cache()
        zones._load.cache_clear()
