"""What holds for every route: ids of requests, problems, limits, and pages that need no network."""

import gzip
import hashlib
import re
import socket
from importlib.resources import files
from urllib.parse import unquote

import pytest
from fastapi import Request

from fleetcron.api.application import _no_route
from fleetcron.api.bodies import read_json
from fleetcron.api.problems import Problem
from fleetcron.api.server import Server
from fleetcron.model.access import Role
from tests.api.server import Api
from tests.api.test_jobs import JOB


def test_health_and_readiness_need_no_key(api: Api) -> None:
    bare = api.acting(None)
    assert bare.get("//healthz") == {"status": "ok"}
    assert bare.get("//readyz") == {"status": "ready"}
    api.context.closing.set()  # as while it stops
    assert bare.get("//readyz", 503)["detail"] == "the server is about to end"


def test_every_answer_has_an_id_and_says_no_to_browsers_that_guess(api: Api) -> None:
    own = api.ask("GET", "//healthz", headers={"X-Request-Id": "trace-1/a"})
    assert own.headers["x-request-id"] == "trace-1/a"
    assert own.headers["x-content-type-options"] == "nosniff"
    assert own.headers["cache-control"] == "no-store"
    for odd in ("a b", "x" * 129, "é"):
        made = api.ask("GET", "//nothing", headers={"X-Request-Id": odd.encode("utf-8").decode("latin-1")})
        assert re.fullmatch(r"[0-9a-f-]{36}", made.headers["x-request-id"])
        assert made.json["request_id"] == made.headers["x-request-id"]


def test_no_answer_on_a_kept_connection_waits_for_an_ack(api: Api) -> None:
    """40 ms, for each but the first ones."""
    second = api.do(Server.open(api.context))
    try:
        with socket.create_connection(second._socket.getsockname()) as asking, second._socket.accept()[0] as taken:
            assert taken.getpeername() == asking.getsockname()
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    finally:
        second.close()


def test_what_is_not_there_is_a_problem(api: Api) -> None:
    assert api.get("//nothing", 404)["code"] == "not_found"
    assert api.get("/nothing", 404)["type"] == "urn:fleetcron:problem:not_found"
    assert api.post("//healthz", status=405)["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("//", "its routes are under /api/v1, and /docs shows them all"),
        ("//nothing", "there is no route GET /nothing; /docs shows them all, and they are under /api/v1"),
        ("/nothing", "there is no route GET /api/v1/nothing"),
        ("/runs/abc", "'abc' is not the number of a run, such as 812"),
        ("/runs/abc/log", "'abc' is not the number of a run"),
        ("/runs/7/nothing", "there is no route GET /api/v1/runs/7/nothing"),
        ("/jobs/acme%2Freport", "A job in a path is its name, without a slash; of another tenant: ?tenant=NAME"),
    ],
)
def test_a_path_that_leads_nowhere_says_what_was_meant(path: str, words: str) -> None:
    """Without a server: nothing of it is asked."""
    scope = {"type": "http", "method": "GET", "path": unquote(path[1:] if path[:2] == "//" else f"/api/v1{path}")}
    assert words in _no_route(Request(scope))
    assert words in _no_route(Request({**scope, "root_path": "/cron", "path": f"/cron{scope['path']}"}))


def test_mistakes_in_a_body_come_at_once_with_what_was_meant(api: Api) -> None:
    def told(path: str, body: object) -> dict[str, tuple[str, str | None]]:
        errors = api.ask("POST", path, body).json["errors"]
        return {each["pointer"]: (each["detail"], each.get("hint")) for each in errors}

    hint = "write it as 30s, 15m, 1h, 7d or 1h30m"
    assert told("/keys", {"name": "x" * 201, "role": "viewer", "expires": "5d", "expires_in": "5x"}) == {
        "/name": ("is too long: 200 characters at most, not 201", None),
        "/expires_in": ("'5x' is not a duration", hint),
        "/expires": ("unknown field", "did you mean expires_in?"),
    }
    assert told("/jobs/old/ping", {"id": "", "duration": "5x", "weather": 1}) == {
        "/id": ("must not be empty", None),
        "/duration": ("'5x' is not a duration", hint),
        "/weather": ("unknown field", "there are: event, id, exit_code, duration, host"),
    }
    assert told("/holds", {"scope": "pool", "name": "p", "reason": "x" * 301, "for": "5x"}) == {
        "/for": ("'5x' is not a duration", hint),
        "/reason": ("is too long: 300 characters at most, not 301", None),
    }
    assert told("/runs/cancel", {"run_ids": [1] * 1_001}) == {
        "/run_ids": ("is too long: 1,000 entries at most, not 1,001", None)
    }


@pytest.mark.parametrize(
    ("method", "path", "body", "detail", "hint"),
    [
        ("POST", "/jobs/tick/trigger", b"null", "must be a JSON object, not null", "send {}, or some of: payload, key"),
        ("POST", "/jobs/report/pause", b"[]", "must be a JSON object, not a list", "send {}, or some of: on_resume"),
        ("POST", "/keys", b"null", "must be a JSON object, not null", 'send {"name": …, "role": …}'),
        ("POST", "/keys", b"", "is missing", 'send {"name": …, "role": …}'),
        ("POST", "/jobs", b"3", "must be a JSON object, not a whole number", "write it in braces: {…}"),
        ("PATCH", "/jobs/report", b'"x"', "must be a JSON object, not text", "write it in braces: {…}"),
    ],
)
def test_a_body_that_is_none_is_told_what_to_send(
    api: Api, method: str, path: str, body: bytes, detail: str, hint: str
) -> None:
    api.post("/jobs", JOB, 201)
    told = api.ask(method, path, raw=body, headers={"Content-Type": "application/json", "If-Match": "*"})
    assert (told.status, told.json["errors"]) == (422, [{"pointer": "", "detail": detail, "hint": hint}])


def test_mistakes_are_told_in_our_own_words(api: Api) -> None:
    """And without the text that was sent: it may be a secret in the wrong place."""

    def told(path: str, body: object) -> list[str]:
        return [": ".join(each.values()) for each in api.ask("POST", path, body).json["errors"]]

    key = {"name": 3, "role": "vewer", "tenant": [], "pools": {}, "rate_per_minute": "hunter2"}
    assert told("/keys", key) == [
        "/name: must be text, not a whole number",
        "/role: is not one of viewer, operator, admin, worker, ping: did you mean viewer?",
        "/tenant: must be text, not a list",
        "/pools: must be a list, not an object",
        "/rate_per_minute: must be a whole number, not text",
    ]
    hold = {"scope": "x", "name": "a\0", "percent": 101, "attempts": 0, "backoff": True, "keeps_end": 1}
    assert told("/holds", hold) == [
        "/scope: is not one of tenant, pool, type",
        "/name: has a character that cannot be stored",
        "/percent: is more than 100, the most that is allowed",
        "/attempts: is less than 1, the least that is allowed",
        "/backoff: must be a number, not true or false",
        "/keeps_end: must be true or false, not a whole number",
    ]
    asked = api.ask("GET", "/runs?limit=x&state=ded").json["errors"]
    assert asked[0]["detail"].startswith("is not one of planned, waiting")
    assert (asked[0]["hint"], asked[1]) == (
        "did you mean dead?",
        {"parameter": "limit", "detail": "must be a whole number"},
    )
    worker = api.acting(api.key("w", Role.WORKER))
    [name, pool] = worker.ask("POST", "/workers", {"name": "a b", "pools": {"x": 1.5}}).json["errors"]
    assert name["detail"] == "must match ^[A-Za-z0-9][A-Za-z0-9._-]*$"
    assert pool == {"pointer": "/pools/x", "detail": "must be a whole number, not a number with a fraction"}


def test_a_parameter_that_is_given_twice_is_refused(api: Api) -> None:
    """One of them would win, and nobody could tell which."""
    told = api.ask("GET", "/runs?state=dead&state=succeeded&job=a&tenant=x&tenant=x&tenant=y")
    assert (told.status, told.places) == (422, ["state", "tenant"])
    assert told.json["detail"] == "the parameter state is given 2 times"
    assert told.json["errors"][1]["detail"] == "is given 3 times"


def test_the_document_is_openapi_31_and_the_page_needs_no_network(api: Api) -> None:
    document = api.get("//openapi.json")
    assert document["openapi"].startswith("3.1.")
    page = api.ask("GET", "//docs")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    links = re.findall(r'(?:src|href)="([^"]+)"', page.body.decode())
    assert links
    for link in links:
        assert "//" not in link
        plain, packed = api.ask("GET", f"//{link}"), api.ask("GET", f"//{link}", headers={"Accept-Encoding": "gzip"})
        assert plain.status == packed.status == 200
        assert packed.headers.get("content-encoding") == ("gzip" if link != "docs/start.js" else None)
        assert len(packed.body) <= len(plain.body)
    assert api.ask("GET", "//docs/SOURCE").status == 404


def test_the_document_says_which_headers_are_taken_and_which_are_needed(api: Api) -> None:
    headers = {
        operation["operationId"]: {
            each["name"]: each["required"] for each in operation.get("parameters", ()) if each["in"] == "header"
        }
        for operations in api.get("//openapi.json")["paths"].values()
        for operation in operations.values()
    }
    for name in ("replace_job", "patch_job", "delete_job"):
        assert headers[name] == {"If-Match": True}
    for name in ("create_job", "batch_jobs", "apply_files", "trigger_job", "pause_job", "finish_runs", "replay_run"):
        assert headers[name] == {"Idempotency-Key": False}, name
    for name in ("create_key", "begin_session", "get_job"):
        assert headers[name] == {}


def test_the_vendored_files_are_those_of_the_package() -> None:
    folder = files("fleetcron.api") / "swagger"
    said = dict(re.findall(r"^([0-9a-f]{64})  (\S+)$", (folder / "SOURCE").read_text(), re.MULTILINE))
    assert len(said) == 2
    for digest, name in said.items():
        data = gzip.decompress((folder / f"{name}.gz").read_bytes())
        assert hashlib.sha256(data).hexdigest() == digest
    assert "Apache License" in (folder / "LICENSE").read_text()


def deep(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "not JSON"),
        (b"\xff", 400, "not UTF-8"),
        (b"nan", 400, "not JSON"),
        (b'{"a": NaN}', 400, "no number"),
        (b'{"a": ' + b"9" * 5000 + b"}", 400, "a number of more than 4,300 digits: write it as a text"),
        (b'{"a": 1, "a": 2}', 422, "twice"),
        (deep(33), 422, "deeper than 32"),
        (deep(200_000), 422, "deeper than 32"),
        (b"[" * 100_000, 422, "deeper than 32"),
    ],
    ids=range(9),
)
def test_json_that_is_refused(body: bytes, status: int, words: str) -> None:
    with pytest.raises(Problem) as refused:
        read_json(body)
    assert refused.value.status_code == status
    assert words in refused.value.detail


def test_json_that_is_read() -> None:
    assert read_json(deep(32))["a"]["a"]
    assert read_json(b"3") == 3
    with pytest.raises(Problem) as refused:
        read_json(b'{"x~/y": [' + deep(31) + b"]}")
    assert refused.value.errors[0]["pointer"] == "/x~0~1y/0" + "/a" * 30
