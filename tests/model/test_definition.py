"""A definition: its defaults, its document and back, and the timing that decides its ticks."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import strategies as st

from fleetcron.model.calendar import local_almanac
from fleetcron.model.definition import Definition
from fleetcron.model.entry import cron_entry, is_hashed
from fleetcron.model.reading import read_calendar, read_job
from fleetcron.model.rules import CalendarUse, CronEntry, EveryEntry, OnceEntry
from fleetcron.model.target import CommandTarget, HttpTarget, PublishTarget, PythonTarget, handler_name
from tests.model.documents import CALENDARS, CRONS, definitions, job
from tests.times.examples import AMOUNT, for_all

RUN = PythonTarget("shop:report")
NIGHTLY = Definition("report", (cron_entry("0 2 * * *", "America/New_York"),), RUN)


def test_the_defaults_are_the_contract() -> None:
    """S0-18 … S0-22, S4-9, S4-10, S2-15: what a job has that says only its name, schedule and handler."""
    found = read_job({"name": "report", "schedule": {"cron": "0 2 * * *"}, "run": {"python": "shop:report"}})
    assert found == Definition("report", (cron_entry("0 2 * * *"),), RUN)
    assert found.description is None  # S0-18
    assert (found.schedule[0].cron, found.schedule[0].timezone) == ("0 2 * * *", "UTC")  # S0-19
    assert (found.type, found.payload) == ("shop:report", {})  # S0-20
    assert found.retry.max_attempts == 4  # S0-21: the first attempt and 3 retries
    assert found.timeout_ms == 3_600_000  # S0-21
    assert found.overlap.policy == "skip"  # S0-22
    assert (found.misfire.policy, found.misfire.window_ms, found.misfire.limit) == ("latest", 86_400_000, 100)  # S4-10
    assert found.start_deadline_ms is None  # S2-15
    assert found.seed == "default/report"


@AMOUNT
def test_reading_what_was_written_gives_the_same(amount: float) -> None:
    @for_all(200 * amount, definitions(), shrink=True)
    def law(definition: Definition) -> None:
        document = definition.as_document()
        again = read_job(json.loads(json.dumps(document)))
        assert again == definition
        assert again.as_document() == document
        kept = Definition.from_body(definition.body())
        assert kept == definition
        assert [getattr(entry, "chosen", None) for entry in kept.schedule] == [
            getattr(entry, "chosen", None) for entry in definition.schedule
        ]
        assert kept.timing(7) == definition.timing(7)
        assert hash(kept) == hash(definition)


@AMOUNT
def test_reading_a_written_calendar_gives_the_same(amount: float) -> None:
    @for_all(100 * amount, CALENDARS, shrink=True)
    def law(calendar) -> None:
        assert read_calendar(json.loads(json.dumps(calendar.as_document()))) == calendar


@AMOUNT
def test_a_timing_names_the_job_only_where_its_ticks_depend_on_it(amount: float) -> None:
    """A million jobs share one timing, unless H or jitter make their ticks their own."""

    @for_all(60 * amount, CRONS, st.sampled_from([0, 60_000]))
    def law(cron: str, jitter_ms: int) -> None:
        one = Definition("one", (cron_entry(cron),), RUN, jitter_ms=jitter_ms)
        other = replace(one, name="other")
        own = cron.startswith("H") or jitter_ms > 0
        assert (one.timing(5).timing_id == other.timing(5).timing_id) == (not own)
        assert one.timing(5).seed == ("default/one" if own else None)


def test_h_is_not_found_in_names_that_have_an_h() -> None:
    assert not is_hashed(cron_entry("0 0 * MAR THU"))
    assert is_hashed(cron_entry("0 0,H(3-9) * MAR THU"))
    assert not is_hashed(EveryEntry(1000))


def test_a_timing_has_the_tenant_only_with_calendars() -> None:
    assert NIGHTLY.timing(0).tenant == ""
    with_calendar = replace(NIGHTLY, calendars=(CalendarUse("us"),), tenant="acme")
    assert with_calendar.timing(0).tenant == "acme"
    assert [part.name for part in with_calendar.timing(0).parts()] == ["us", "America/New_York"]


def test_an_interval_counts_from_its_creation_unless_it_has_an_anchor() -> None:
    """S2-10: the interval and the instant from which it counts are stored, so that a restart moves nothing."""
    assert Definition("a", (EveryEntry(900_000),), RUN).timing(12_345).entries == (EveryEntry(900_000, 12_000),)
    assert Definition("a", (EveryEntry(900_000, 7),), RUN).timing(12_345).entries == (EveryEntry(900_000, 7),)


def test_local_business_time_keeps_the_zone_and_its_policies() -> None:
    """S2-11 … S2-14: the IANA zone is stored, not an offset, and what happens at clock changes and month ends."""
    entry = cron_entry("30 2 31 * *", "America/New_York")
    assert entry == CronEntry("30 2 31 * *", "America/New_York", "shift", "first", "skip")
    timing = Definition("a", (entry,), RUN).timing(0)
    timetable = timing.timetable(local_almanac(timing.parts()))
    assert timetable.next_ms(1_772_323_200_000) == 1_774_938_600_000  # 2026-03-31T06:30Z is 02:30 in summer time


def test_policies_that_were_derived_follow_the_expression_and_chosen_ones_stay() -> None:
    """S2-12, S2-13: editing the expression derives the policies anew unless somebody chose them."""
    document = read_job(job(schedule={"cron": "30 2 * * *", "dst_fold": "second"})).as_document()
    entry = document["schedule"][0]
    assert (entry["dst_gap"], entry["dst_fold"], entry["derived"]) == ("shift", "second", ["dst_gap"])
    entry["cron"] = "*/15 * * * *"
    edited = read_job(document).schedule[0]
    assert (edited.dst_gap, edited.dst_fold, edited.chosen) == ("skip", "second", frozenset({"dst_fold"}))


def test_a_derived_type_follows_the_handler_and_a_chosen_one_stays() -> None:
    document = read_job(job()).as_document()
    assert (document["type"], document["derived"]) == ("shop:report", ["type"])
    assert read_job({**document, "run": {"command": ["/bin/tar", "x"]}}).type == "tar"
    chosen = read_job(job(type="reports")).as_document()
    assert "derived" not in chosen
    assert read_job({**chosen, "run": {"command": ["/bin/tar", "x"]}}).type == "reports"


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (RUN, "shop:report"),
        (CommandTarget(("/usr/bin/python3", "report.py")), "python3"),
        (CommandTarget(("/opt/x/run.sh | gzip",), shell=True), "run.sh"),
        (CommandTarget(("/",)), "command"),
        (HttpTarget("https://shop.example"), "http"),
        (PublishTarget("nats", "reports"), "publish"),
    ],
)
def test_the_type_is_the_handlers_name_unless_given(target, name: str) -> None:
    """S0-20, S4-1: a handler reference, and the label that follows from it."""
    assert handler_name(target) == name
    assert Definition("a", NIGHTLY.schedule, target).type == name


def test_equal_means_equal_as_a_document() -> None:
    assert replace(NIGHTLY, payload={"a": 1}) != replace(NIGHTLY, payload={"a": True})
    assert replace(NIGHTLY, payload={"a": 1, "b": 2}) == replace(NIGHTLY, payload={"b": 2, "a": 1})
    chosen = replace(NIGHTLY, schedule=(cron_entry("0 2 * * *", "America/New_York", "shift"),))
    assert chosen != NIGHTLY
    assert chosen.timing(0) == NIGHTLY.timing(0)


def test_a_field_of_a_newer_release_is_left_out_when_the_store_is_read() -> None:
    document = NIGHTLY.as_document() | {"weather": "fine"}
    document["schedule"][0]["leap_seconds"] = "smear"
    document["retry"]["mood"] = 1
    assert Definition.from_document(document) == NIGHTLY
    assert Definition.from_document({k: document[k] for k in ("name", "schedule", "run")}) == NIGHTLY


def test_a_local_time_and_an_instant_are_kept_apart() -> None:
    once = read_job(
        job(schedule=[{"at": "2027-03-14T02:30", "timezone": "America/New_York"}, {"at": "2027-01-01T10:00+01:00"}])
    )
    assert once.schedule == (
        OnceEntry("2027-03-14T02:30:00", "America/New_York"),
        OnceEntry("2027-01-01T09:00:00Z", None),
    )


def test_what_reads_no_document_does_not_wait_for_pydantic_or_yaml() -> None:
    rooms = ["definition", "job", "run", "states", "outcome", "lease", "tenant", "calendar", "payload", "target"]
    code = f"import sys, {', '.join(f'fleetcron.model.{room}' for room in rooms)}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pydantic", "yaml"} & set(loaded)
