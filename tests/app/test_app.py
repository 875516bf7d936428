"""Functions, what stands above them, and the definitions that come of it."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, get_args

import pytest

import fleetcron
from fleetcron import Fleetcron
from fleetcron.app.application import PRUNES
from fleetcron.app.defining import ENTRY
from fleetcron.app.fields import JobFields
from fleetcron.errors import ConfigError, DefinitionError
from fleetcron.model.document import CronShape, EveryShape, JobShape, OnceShape
from fleetcron.model.reading import read_job
from fleetcron.scheduler.sync import Prune


def nightly_report(ctx: object) -> str:
    return f"report for {ctx}"


async def load_orders() -> int:
    return 3


def with_payload(ctx: object, payload: object) -> None:
    pass


def generates() -> Any:
    yield 1


def takes_too_much(one: object, two: object, three: object) -> None:
    pass


def declared(function: Callable[..., Any] = nightly_report, /, **fields: Any) -> Fleetcron:
    app = Fleetcron(name="shop")
    app.job(**fields)(function)
    return app


def mistakes(app: Fleetcron) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        app.definitions()
    return list(map(str, caught.value.mistakes))


def test_a_function_stays_a_plain_function() -> None:
    app = Fleetcron()
    assert app.job(every="1h")(nightly_report) is nightly_report
    assert app.job(every="1h")(load_orders) is load_orders
    assert nightly_report("ann") == "report for ann"
    assert asyncio.run(load_orders()) == 3
    with pytest.raises(TypeError, match="stands above a function, not above a str"):
        app.job(every="1h")("shop.jobs:report")  # type: ignore[type-var]


def test_what_is_written_is_the_document() -> None:
    """The same model, so the same defaults: nothing has a meaning of its own in Python."""
    [made] = declared(
        cron="0 2 * * *",
        timezone="America/New_York",
        retry={"max_attempts": 3, "backoff": ("30s", timedelta(minutes=2))},
        overlap="queue",
        pool="reports",
        timeout=timedelta(minutes=30),
        payload={"kind": "full", "for": "{{ scheduled_for }}"},
        depends_on=("load-orders",),
        starts_at=datetime(2027, 1, 1, tzinfo=UTC),
        jitter=1.5,
        name=None,
        tenant=None,
    ).definitions()
    assert made == read_job(
        {
            "name": "nightly-report",
            "managed_by": "app:shop",
            "schedule": {"cron": "0 2 * * *", "timezone": "America/New_York"},
            "run": {"python": f"{__name__}:nightly_report"},
            "retry": {"max_attempts": 3, "backoff": ["30s", "2m"]},
            "overlap": "queue",
            "pool": "reports",
            "timeout": "30m",
            "payload": {"kind": "full", "for": "{{ scheduled_for }}"},
            "depends_on": ["load-orders"],
            "starts_at": "2027-01-01T00:00:00Z",
            "jitter": "1500ms",
        }
    )


NOON = datetime(2027, 6, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fields", "schedule"),
    [
        ({"every": timedelta(hours=1)}, {"every": "1h"}),
        ({"every": "15m", "anchor": NOON}, {"every": "15m", "anchor": "2027-06-30T12:00:00Z"}),
        ({"at": NOON}, {"at": "2027-06-30T12:00:00Z"}),
        (
            {"at": NOON.replace(tzinfo=None), "timezone": "Asia/Tokyo"},
            {"at": "2027-06-30T12:00", "timezone": "Asia/Tokyo"},
        ),
        ({"cron": "0 2 31 * *", "month_end": "clamp"}, {"cron": "0 2 31 * *", "month_end": "clamp"}),
        ({"cron": "0 2 * * *", "dst_gap": "skip"}, {"cron": "0 2 * * *", "dst_gap": "skip"}),
        ({"schedule": [{"cron": "0 9 L * *"}, {"every": "90m"}]}, [{"cron": "0 9 L * *"}, {"every": "90m"}]),
        ({"schedule": {"cron": "0 9 L * *"}}, {"cron": "0 9 L * *"}),
    ],
)
def test_one_entry_or_several(fields: dict[str, Any], schedule: object) -> None:
    [made] = declared(**fields).definitions()
    assert made.schedule == read_job({"name": "a", "schedule": schedule, "run": {"python": "m:f"}}).schedule


def test_one_function_may_have_several_jobs() -> None:
    app = Fleetcron()
    app.job(every="1h")(app.job(every="2h", name="other", tenant="acme")(nightly_report))
    assert [(each.tenant, each.name) for each in app.definitions()] == [
        ("acme", "other"),
        ("default", "nightly-report"),
    ]


def test_every_field_of_a_document_can_be_written() -> None:
    known = set(JobFields.__annotations__)
    assert known == (set(JobShape.model_fields) - {"run", "managed_by", "derived"}) | set(ENTRY) | {"on_demand"}
    entries = {field for shape in (CronShape, EveryShape, OnceShape) for field in shape.model_fields}
    assert set(ENTRY) == entries - {"derived"}
    assert set(PRUNES) == set(get_args(Prune))


def test_all_mistakes_of_all_functions_at_once() -> None:
    app = declared(cron="0 2 * *", timezone="EST", tiemout="1h", retry={"backoff": ["30s", "2x"]}, overlap="que")
    app.job(every="5x", name="B!")(load_orders)
    app.job(schedule=[{"cron": "0 2 * * *"}, {"cron": "0 0 30 2 *"}])(with_payload)
    found = mistakes(app)
    me = __name__
    for at, start in enumerate(
        [
            f"{me}:nightly_report: cron: 5 or 6 fields are needed and this has 4",
            f"{me}:nightly_report: timezone: EST is ambiguous",
            f"{me}:nightly_report: retry.backoff[1]: '2x' is not a duration",
            f"{me}:nightly_report: overlap: 'que' is not one of skip, queue",
            f"{me}:nightly_report: tiemout: unknown field 'tiemout'; did you mean timeout?",
            f"{me}:load_orders: name: 'B!' is not a name",
            f"{me}:load_orders: every: '5x' is not a duration",
            f"{me}:with_payload: schedule[1].cron: '0 0 30 2 *' never fires",
        ]
    ):
        assert found[at].startswith(start), found
    assert len(found) == 8


def test_what_is_not_for_a_decorator() -> None:
    me = f"{__name__}:nightly_report"
    assert mistakes(declared(every="1h", run={"command": ["x"]}, managed_by="me")) == [
        f"{me}: run is the function itself; leave it out",
        f"{me}: managed_by is the app; leave it out, and name the app: Fleetcron(name=…)",
    ]
    [both] = mistakes(declared(schedule=[{"every": "1h"}], cron="0 2 * * *", timezone="UTC"))
    assert both == f"{me}: has a schedule, and cron, timezone beside it; write them into the entries of the schedule"
    [two] = mistakes(declared(cron="0 2 * * *", every="1h"))
    assert two.startswith(f"{me}: every: unknown field 'every'; it has one of cron, every, at")
    [none] = mistakes(declared())
    assert none.startswith(f"{me}: schedule: is missing")


def test_two_jobs_of_one_name() -> None:
    app = declared(every="1h", name="same")
    app.job(every="1h", name="same")(load_orders)
    app.job(every="1h", name="same", tenant="acme")(with_payload)
    [found] = mistakes(app)
    assert found.startswith(f"{__name__}:load_orders: name: same is the name of {__name__}:nightly_report too")


class Reports:
    @staticmethod
    def weekly() -> None:
        pass


def test_functions_that_a_worker_could_not_import() -> None:
    def local() -> None:
        pass

    for function, text in (
        (lambda: None, "<lambda>: a lambda has no name to import it by; write a function with def"),
        (local, "local: it is inside another function, where no worker can reach it; move it out of there"),
        (partial(nightly_report, 1), "partial: a partial has no name to import it by; write a function with def"),
    ):
        [found] = mistakes(declared(function, every="1h"))
        assert found.endswith(text)
    [made] = declared(Reports.weekly, every="1h").definitions()
    assert made.as_document()["run"] == {"python": f"{__name__}:Reports.weekly"}


def test_functions_that_a_worker_could_not_call() -> None:
    [found] = mistakes(declared(takes_too_much, every="1h"))
    assert found.startswith(f"{__name__}:takes_too_much: the function takes 3 arguments; write def f(ctx)")
    [found] = mistakes(declared(generates, every="1h"))
    assert found.startswith(f"{__name__}:generates: the function is a generator")


def test_a_function_that_is_hidden_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    app = declared(every="1h", name="first")

    def second() -> None:
        pass

    second.__qualname__ = "nightly_report"
    monkeypatch.setattr(sys.modules[__name__], "nightly_report", second)
    app.job(every="1h", name="second")(second)
    [found] = mistakes(app)
    assert found.startswith(f"{__name__}:nightly_report: there are two functions of this name")
    monkeypatch.delattr(sys.modules[__name__], "nightly_report")
    assert "has no function nightly_report any more" in mistakes(app)[0]


def test_an_app_that_cannot_be() -> None:
    with pytest.raises(ConfigError) as caught:
        Fleetcron(name="Shop!", prune="all")  # type: ignore[arg-type]
    assert [each.pointer for each in caught.value.mistakes] == ["Fleetcron(name=…)", "Fleetcron(prune=…)"]
    assert "secret" not in repr(Fleetcron("postgresql://me:secret@db/x", name="shop"))


def test_a_module_with_jobs_costs_nothing_to_import() -> None:
    """Every handler host imports it."""
    heavy = {
        "pydantic",
        "yaml",
        "asyncio",
        "sqlite3",
        "asyncpg",
        "fleetcron.node",
        "fleetcron.model",
        "fleetcron.config",
    }
    script = (
        "import sys, json\n"
        "import fleetcron\n"
        "early = 'fleetcron.app' in sys.modules\n"
        "from fleetcron import Fleetcron\n"
        "app = Fleetcron('sqlite:///fleetcron.db')\n"
        "@app.job(cron='0 2 * * *', retry={'max_attempts': 3})\n"
        "def report(): pass\n"
        f"print(json.dumps([early, sorted({heavy!r} & set(sys.modules))]))"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == [False, []]
    with pytest.raises(AttributeError, match="has no attribute 'Fleet'"):
        _ = fleetcron.Fleet
