"""Documents and definitions to test with: the smallest job, and any job."""

from typing import Any

from hypothesis import strategies as st

from fleetcron.model.calendar import CalendarDocument, RepeatedWindow
from fleetcron.model.definition import Definition
from fleetcron.model.entry import cron_entry, once_entry
from fleetcron.model.rules import (
    AlertRule,
    CalendarUse,
    CronEntry,
    EveryEntry,
    MisfireRule,
    OnceEntry,
    OverlapRule,
    Retention,
    RetryRule,
)
from fleetcron.model.target import CommandTarget, HttpTarget, PublishTarget, PythonTarget

SMALLEST: dict[str, Any] = {"name": "report", "schedule": {"cron": "0 2 * * *"}, "run": {"python": "shop:report"}}


def job(**more: Any) -> dict[str, Any]:
    return {**SMALLEST, **more}


NAMES = st.from_regex(r"\A[a-z0-9][a-z0-9._-]{0,20}\Z")
LINES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=20)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
DURATIONS = st.integers(1, 10**10) | st.integers(1, 10**6).map(lambda n: n * 1000)
INSTANTS = st.integers(0, 4_000_000_000_000)
ZONES = st.sampled_from(["UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata"])
CRONS = st.sampled_from(
    [
        "0 2 * * *",
        "*/15 * * * *",
        "30 1 * * SUN",
        "0 0 31 * *",
        "@daily",
        "H H * * *",
        "H/20 9-17 * * 1-5",
        "0 0 2 L * ?",
    ]
)
MAYBE_COUNT = st.none() | st.integers(1, 1000)

CRON_ENTRIES: st.SearchStrategy[CronEntry] = st.builds(
    cron_entry,
    CRONS,
    ZONES,
    st.sampled_from([None, "skip", "shift"]),
    st.sampled_from([None, "first", "second", "both"]),
    st.sampled_from(["skip", "clamp"]),
)
EVERY_ENTRIES = st.builds(EveryEntry, st.integers(1000, 10**10), st.none() | INSTANTS)
ONCE_ENTRIES: st.SearchStrategy[OnceEntry] = st.builds(
    once_entry,
    st.datetimes().map(lambda t: t.isoformat() + "Z")
    | st.sampled_from(["2027-01-01T09:00:00Z", "2027-03-14T02:30:00-05:00", "2030-01-01T00:00:00.123Z"]),
    st.none() | ZONES,
) | st.builds(once_entry, st.just("2027-03-14T02:30:00"), ZONES, st.just("shift"), st.sampled_from(["first", "both"]))
TARGETS = (
    st.builds(PythonTarget, st.just("shop.jobs:report"))
    | st.builds(
        CommandTarget,
        st.lists(TEXTS.filter(lambda t: t.strip()), min_size=1, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from(["A", "SHOP_URL", "TZ"]), TEXTS, max_size=2),
        st.none() | LINES,
    )
    | st.builds(CommandTarget, st.tuples(TEXTS.filter(lambda t: t.strip())), shell=st.just(True))
    | st.builds(
        HttpTarget,
        st.just("https://shop.example:8443/report?x=1"),
        st.sampled_from(["GET", "PUT"]),
        st.dictionaries(st.sampled_from(["X-Shop", "accept"]), LINES, max_size=2),
        st.none() | TEXTS,
    )
    | st.builds(PublishTarget, LINES, LINES)
)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS.filter(lambda text: "{{" not in text)
    | st.sampled_from(["{{ scheduled_for }}", "for {{tenant}} and {{ job.name }}"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS.filter(lambda t: "{{" not in t), inner, max_size=3)
    ),
    max_leaves=8,
)
RETRIES = (
    st.builds(
        RetryRule,
        max_attempts=st.integers(1, 1000),
        delays_ms=st.lists(DURATIONS, min_size=1, max_size=4).map(tuple),
        jitter=st.floats(0, 1),
        max_losses=st.integers(1, 9),
        retry_on=st.lists(LINES, max_size=2).map(tuple),
    )
    | st.builds(RetryRule, backoff=st.just("fixed"), delays_ms=st.tuples(DURATIONS), give_up_on=st.tuples(LINES))
    | st.builds(
        RetryRule,
        backoff=st.just("exponential"),
        delays_ms=st.tuples(st.integers(1, 10**6)),
        max_delay_ms=st.integers(10**6, 10**9),
    )
)
OVERLAPS = st.builds(
    OverlapRule,
    st.sampled_from(["skip", "queue", "collapse", "cancel_previous"]),
    concurrency_key=st.none() | LINES,
) | st.builds(OverlapRule, st.just("allow"), MAYBE_COUNT)
MISFIRES = st.builds(
    MisfireRule,
    st.sampled_from(["skip", "latest"]),
    st.integers(10**6, 10**10),
    st.integers(1, 10_000),
    st.integers(0, 10**6),
    st.sampled_from(["catchup", "live"]),
)
USES = st.builds(
    CalendarUse, NAMES, st.sampled_from(["exclude", "require"]), st.sampled_from(["skip", "next", "previous", "defer"])
)


@st.composite
def definitions(draw: st.DrawFn) -> Definition:
    """Any definition that a document can say."""
    bounds = draw(st.none() | st.tuples(st.integers(0, 10**12), st.integers(3 * 10**12, 4 * 10**12)))
    name = draw(NAMES)
    deadline = draw(st.none() | st.integers(10**7, 10**9))
    recurring = draw(st.lists(CRON_ENTRIES | EVERY_ENTRIES, min_size=1, max_size=3))
    return Definition(
        name=name,
        schedule=(*recurring, *draw(st.lists(ONCE_ENTRIES, max_size=2))),
        run=draw(TARGETS),
        tenant=draw(st.just("default") | NAMES),
        description=draw(st.none() | TEXTS),
        type=draw(st.just("") | LINES),
        managed_by=draw(st.none() | LINES),
        starts_ms=bounds and bounds[0],
        ends_ms=bounds and bounds[1],
        max_ticks=draw(MAYBE_COUNT),
        calendars=tuple(draw(st.lists(USES, max_size=3, unique_by=lambda use: use.name))),
        jitter_ms=draw(st.integers(0, 10**6)),
        payload=draw(st.dictionaries(TEXTS.filter(lambda t: "{{" not in t), JSON_VALUES, max_size=3)),
        pool=draw(NAMES),
        priority=draw(st.integers(-100, 100)),
        timeout_ms=draw(DURATIONS),
        retry=draw(RETRIES),
        overlap=draw(OVERLAPS),
        misfire=draw(MISFIRES),
        start_deadline_ms=deadline,
        depends_on=tuple(draw(st.lists(NAMES.filter(lambda other: other != name), max_size=3, unique=True))),
        on_upstream_failure=draw(st.sampled_from(["skip", "run"] if deadline is None else ["skip", "run", "wait"])),
        region=draw(st.none() | NAMES),
        alerts=draw(
            st.builds(
                AlertRule,
                st.booleans(),
                MAYBE_COUNT,
                st.booleans(),
                st.none() | st.floats(0.01, 1),
                st.lists(LINES, max_size=2).map(tuple),
            )
        ),
        pause_after_failures=draw(MAYBE_COUNT),
        retention=draw(st.builds(Retention, DURATIONS, MAYBE_COUNT)),
    )


DATES = st.dates().map(lambda day: day.strftime("%Y-%m-%d").zfill(10)) | st.sampled_from(["12-25", "02-29"])
CALENDARS = st.builds(
    CalendarDocument,
    NAMES,
    NAMES,
    st.none() | ZONES,
    st.lists(st.sampled_from(["SUN", "mon", "TUE", "SAT"]), max_size=4).map(tuple),
    st.lists(DATES, min_size=1, max_size=5).map(tuple),
) | st.builds(
    CalendarDocument,
    NAMES,
    NAMES,
    windows=st.lists(st.tuples(INSTANTS, st.integers(1, 10**9)).map(lambda w: (w[0], sum(w))), max_size=3).map(tuple),
    repeated=st.lists(
        st.builds(RepeatedWindow, st.sampled_from(["0 2 * * SUN", "@monthly"]), ZONES, st.integers(1, 10**7)),
        min_size=1,
        max_size=2,
    ).map(tuple),
)
