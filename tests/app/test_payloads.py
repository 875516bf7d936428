"""Functions that say what they take: checked when they are defined, when a run is asked for, and when they start."""

import asyncio
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from fleetcron import Fleetcron
from fleetcron.app.defining import NEVER
from fleetcron.clock import SystemClock
from fleetcron.config import ExecutorConfig
from fleetcron.errors import DefinitionError, RefusedError
from fleetcron.executors.handler_hosts import HandlerHosts
from fleetcron.executors.programs import Programs
from fleetcron.model.definition import Definition
from fleetcron.model.outcome import Failed, Succeeded
from fleetcron.store.store import Store
from fleetcron.testing import world
from tests.app import billing, unbilled
from tests.cli.folder import Folder
from tests.executors.stage import Heard, assignment
from tests.store.engines import hand_cranked

NOW = 1_800_000_000_000
INVOICE = {"customer": "acme", "due": "2027-01-31T00:00:00Z", "lines": [{"text": "tea", "price": "2.50"}]}
WRONG = {"customer": 7, "lines": [{"text": "tea", "price": "much"}], "dew": "2027-01-31T00:00:00Z"}


def declared(function: Callable[..., Any], **fields: Any) -> Fleetcron:
    app = Fleetcron(name="shop")
    app.job(**fields)(function)
    return app


def mistakes(app: Fleetcron) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        app.definitions()
    return list(map(str, caught.value.mistakes))


def job(name: str, app: Fleetcron = billing.app) -> Definition:
    return next(each for each in app.definitions() if each.name == name)


def test_the_payload_of_a_job_is_checked_when_it_is_defined() -> None:
    assert job("print-report").payload == {"day": "2027-01-01T00:00:00Z", "pages": 3}  # a value became JSON
    assert job("write-letter").payload == {"to": "{{ tenant }}", "copies": 2}
    me = "tests.app.billing"
    assert mistakes(declared(billing.has_no_day, every="1h", payload={"pages": "three"})) == [
        f"{me}:has_no_day: payload.day: Field required; Report says what it takes",
        f"{me}:has_no_day: payload.pages: Input should be a valid integer, unable to parse string as an integer; "
        "Report says what it takes",
    ]
    [none] = mistakes(declared(billing.has_no_day, every="1h"))
    assert none.startswith(f"{me}:has_no_day: payload.day: Field required")
    [unseen] = mistakes(declared(billing.is_unseen, every="1h"))
    assert unseen.startswith(f"{me}:is_unseen: payload: its annotation 'Unseen[int]' cannot be looked up (name")
    assert unseen.endswith("import it outside of `if TYPE_CHECKING:`, or leave the annotation out")


def test_a_job_that_only_runs_when_it_is_asked_for() -> None:
    """Who asks brings the payload, so there is none to check. What it is in the store is said in the docs."""
    made = job("send-invoice")
    assert made.payload == {}
    assert [str(entry["at"]) for entry in made.as_document()["schedule"]] == [NEVER]
    [both] = mistakes(declared(billing.has_pydantic, on_demand=True, every="1h"))
    assert "runs on demand, and has a schedule too" in both


def test_what_is_sent_along_is_checked_before_anything_is_written() -> None:
    async def scenario() -> None:
        async with hand_cranked(":memory:", NOW) as (engine, _):
            app = billing.app
            app.store = store = Store(engine)
            try:
                await app.sync(store, shards=4)
                with pytest.raises(DefinitionError) as caught:
                    await app.enqueue("send-invoice", WRONG)
                assert [(each.pointer, each.hint) for each in caught.value.mistakes] == [
                    (f"/payload/{pointer}", "Invoice says what it takes")
                    for pointer in ("customer", "due", "lines/0/price", "dew")
                ]
                with pytest.raises(DefinitionError, match=r"/payload: Input tag 'tax' .*; Invoice \| Refund says"):
                    await app.enqueue(billing.book, {"kind": "tax"})
                with pytest.raises(DefinitionError, match="/payload: must be a mapping"):
                    await app.enqueue("send-invoice", billing.Refund(kind="refund", amount=1))
                with pytest.raises(DefinitionError, match="/payload/customer: Field required"):
                    await app.enqueue("send-invoice")
                for unknown in ("send-invoise", "send-invoises"):
                    with pytest.raises(RefusedError, match=r"no job send-inv.*did you mean send-invoice\?") as meant:
                        await app.enqueue(unknown, billing.Refund(kind="refund", amount=1))
                    assert "a Refund can be sent to a job whose function takes it" in str(meant.value)
                    with pytest.raises(RefusedError, match=r"there is no job send-inv.*did you mean send-invoice\?"):
                        await app.enqueue(unknown, {"any": 1})
                with pytest.raises(DefinitionError, match="key: must be a text, not int"):
                    await app.enqueue("takes-all", {"other": 1}, key=17)  # type: ignore[arg-type]
                for refused in ("no-such-job", billing.has_pydantic):
                    with pytest.raises(RefusedError, match="no job"):
                        await app.enqueue(refused)
                assert await app.store.events.list(kind="run_triggered") == []

                given = billing.Invoice(customer="acme", due=datetime(2027, 1, 31, tzinfo=UTC))
                first = await app.enqueue(billing.send_invoice, given, key="order-1")
                assert (first.tenant, first.name, first.created) == ("default", "send-invoice", True)
                again = await app.enqueue("send-invoice", given, key="order-1")
                assert (again.run_id, again.created) == (first.run_id, False)
                assert (await app.enqueue("takes-all", {"other": 1})).created
            finally:
                app.store = None

    asyncio.run(scenario())


async def in_a_host(app: Fleetcron, calls: list[tuple[str, Any]]) -> list[Any]:
    """What becomes of each call in a real handler host."""
    heard, programs = Heard(), Programs(os.environ)
    functions = tuple(each.run.function for each in app.definitions())  # type: ignore[union-attr]
    hosts = HandlerHosts(programs, ExecutorConfig(handlers=functions), 4, os.environ, SystemClock(), heard.tell)
    try:
        targets = {each.name: each.run for each in app.definitions()}
        await hosts.learn(list(targets.values()))
        hosts.start([assignment(targets[name], at, payload=given) for at, (name, given) in enumerate(calls)])
        ends = [await heard.end_of(at) for at in range(len(calls))]
        return [json.loads(e.result_json or "null") if e.outcome == Succeeded() else e.outcome for e in ends]
    finally:
        await hosts.close(1)
        await programs.close()


def test_the_function_gets_what_it_says_or_is_not_called() -> None:
    *good, bad, worse = asyncio.run(
        in_a_host(
            billing.app,
            [
                ("send-invoice", INVOICE),
                ("print-report", {"day": "2026-05-05"}),
                ("write-letter", {"to": "ann", "copies": "3"}),
                ("book", INVOICE | {"kind": "invoice"}),
                ("takes-all", {"customer": 7}),
                ("send-invoice", WRONG),
                ("book", {"kind": "refund", "amount": [1]}),
            ],
        )
    )
    assert good == [
        ["Invoice", "2027-01-31T00:00:00+00:00", "2.50"],
        ["Report", 2026, 1],
        {"to": "ann", "copies": 3},
        "Invoice",
        {"customer": 7},
    ]
    assert isinstance(bad, Failed)
    assert bad.error.code == "bad_payload"
    assert bad.error.trace is None
    assert bad.error.text.startswith("the payload does not fit Invoice: /customer: Input should be a valid string")
    assert "/due: Field required; /lines/0/price: " in bad.error.text
    assert isinstance(worse, Failed)
    assert "fit Invoice | Refund: /amount: Input should be a valid integer" in worse.error.text


def test_a_host_without_such_functions_does_not_import_pydantic() -> None:
    assert asyncio.run(in_a_host(unbilled.app, [("has-pydantic", {"a": 1})])) == [False]


def test_a_payload_that_does_not_fit_is_not_tried_again() -> None:
    """Whoever has sent it: the API, the command line and other languages know nothing of the type."""
    with world(billing.app, start="2027-01-04 00:30") as w:
        w.trigger("send-invoice", WRONG)
        w.trigger("send-invoice", INVOICE)
        w.handler("book", seconds=1, call=True)
        w.run_for("1441m")  # a day, and what was due at the end of it
        by_state = {run.state: run for run in w.runs("send-invoice")}
        assert by_state.keys() == {"dead", "succeeded"}
        assert by_state["dead"].attempts == 1
        assert {run.state for run in w.runs("book")} == {"succeeded"}


def test_the_schema_of_what_a_job_takes() -> None:
    schema = billing.app.payload_schema("send-invoice")
    assert schema is not None
    assert schema["required"] == ["customer", "due"]
    assert billing.app.payload_schema(billing.print_report)["properties"].keys() == {"day", "pages"}  # type: ignore[index]
    assert billing.app.payload_schema("takes-all") is None


def test_the_command_shows_it(quick: Folder) -> None:
    quick.write("shop.py", "from tests.app.billing import app\n")
    shown = quick("schema", "print-report", "--app", "shop:app").json
    assert shown["properties"].keys() == {"day", "pages"}
    for job, why in (("takes-all", "does not say what it takes"), ("other", "shop:app has no job other")):
        assert why in quick("schema", job, "--app", "shop:app", code=2).stderr
    assert "write JOB and --app together" in quick("schema", "print-report", code=2).stderr
