"""The client is the API: every route has a call, and every type says what the OpenAPI document says."""

import inspect
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints, is_typeddict

from fleetcron.client import fleet, job_shapes, jobs, run_shapes, runs, shadow
from fleetcron.client.calls import Noun, Stream, Verb
from fleetcron.model.states import JOB_STATES, RunState
from tests.api.server import V1, Api


def calls() -> Iterator[tuple[str, str, Any]]:
    for room in (jobs, runs, fleet, shadow):
        for noun in vars(room).values():
            if inspect.isclass(noun) and issubclass(noun, Noun):
                for call in vars(noun).values():
                    if isinstance(call, Verb | Stream):
                        yield call.route.method, call.route.path, call


def test_every_route_has_a_call_whose_answer_has_the_fields_of_the_document(server: Api) -> None:
    document = server.get("//openapi.json")
    routes = {
        (method.upper(), path.removeprefix(V1)): operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if path.startswith(V1)
        and not path.startswith((f"{V1}/workers", f"{V1}/session"))  # of workers, and of browsers
    }
    described = {(method, path): call for method, path, call in calls()}
    assert described.keys() == routes.keys()
    for (method, path), operation in routes.items():
        call = described[method, path]
        good = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
        if isinstance(call, Verb):
            [shape] = get_args(get_type_hints(call.describe)["return"])
            compare(good["content"]["application/json"]["schema"], shape, document, f"{method} {path}")
        asked = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
        names = {"from": "since", "to": "until", "answer": "answer"}
        own = set(inspect.signature(call.describe).parameters)
        missing = {names.get(each, each) for each in asked} - own
        assert missing == set(), (method, path, missing)


def compare(schema: dict[str, Any], shape: Any, document: dict[str, Any], where: str) -> None:
    """Fields, and those below them; which of them are always there."""
    schema = resolved(schema, document)
    if not is_typeddict(shape):
        for inner in get_args(shape):
            if is_typeddict(inner):
                part = schema.get("items") or next(each for each in schema["anyOf"] if each != {"type": "null"})
                compare(part, inner, document, where)
        return
    fields = schema["properties"]
    assert fields.keys() == get_type_hints(shape).keys(), where
    assert set(schema.get("required", ())) == shape.__required_keys__, where
    for name, hint in get_type_hints(shape).items():
        compare(fields[name], hint, document, f"{where} {name}")


def resolved(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    found: dict[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def test_words_that_the_client_knows_are_those_of_the_engine() -> None:
    assert set(get_args(run_shapes.State)) == {str(state) for state in RunState}
    assert set(get_args(job_shapes.JobState)) == set(JOB_STATES)
    assert set(runs.FINAL) == {str(state) for state in RunState if state.is_final}
