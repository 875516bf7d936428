"""What nobody sends by accident: every route answers with what is wrong and where, in bounded work, and never with 500.

Every field of every route is taken from the document itself. Here each gets some of the hostile values, in `make soak`
each gets all of them, on both databases.
"""

import gzip
import json
import socket
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any
from urllib.parse import urlsplit

import pytest

from fleetcron.api import envelope, wire
from fleetcron.api.routing import ROLE
from fleetcron.model.access import Role
from tests.api.server import Answer, Api
from tests.api.test_jobs import JOB, MINUTELY
from tests.api.test_runs import worked
from tests.api.test_walk import filled, routes

JSON = {"Content-Type": "application/json", "If-Match": "*"}
BASES: dict[str, dict[str, Any]] = {"/jobs": JOB, "/jobs/preview": JOB, "/jobs/{name}": MINUTELY}


def deep(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


VALUES = {
    "nul": rb'"a\u0000b"',
    "half a pair": rb'"\ud800"',
    "half a pair in a key": rb'{"\udfff": 1}',
    "nul in a key": rb'{"a\u0000": 1}',
    "null": b"null",
    "true": b"true",
    "negative": b"-1",
    "a fraction": b"0.5",
    "beyond 64 bits": b"9223372036854775808",
    "400 digits": b"1" + b"0" * 400,
    "5,000 digits": b"1" + b"0" * 5_000,
    "infinite": b"1e999",
    "not a number": b"NaN",
    "an object": b"{}",
    "an odd list": b'[1, "a", null, {}, []]',
    "twice": b'{"a": 1, "a": 2}',
    "33 levels": deep(33),
    "10,000 levels": deep(10_000),
    "marks": '"‮ ´ﬁ\\u2028"'.encode(),
    "long": b'"' + b"x" * 300_000 + b'"',
    "5,000 fields": b"{" + b",".join(b'"k%d": 1' % number for number in range(5_000)) + b"}",
    "100,000 entries": b"[" + b"1," * 100_000 + b"1]",
}
ALWAYS_REFUSED = {"half a pair", "half a pair in a key", "5,000 digits", "infinite", "not a number", "twice",
                  "33 levels", "10,000 levels"}  # fmt: skip


class Target:
    """A server with something to find, and a worker that may be asked for too."""

    def __init__(self, api: Api) -> None:
        self.api = api
        api.post("/jobs", {**MINUTELY, "overlap": "allow"}, 201)
        worked(api, "succeed", "die", "run")
        self.worker = api.acting(api.key("host", Role.WORKER, rate=600_000))
        self.me = self.worker.post("/workers", {"name": "w", "pools": {"default": 2}}, 201)["worker_id"]
        self.admin = api.acting(api.key("root", rate=600_000))
        self.document = api.get("//openapi.json")

    def ask(self, method: str, path: str, role: str, data: bytes) -> Answer:
        who = self.worker if role == "worker" else self.admin
        where = filled(path, 1, "x").replace("w~x~1", self.me)
        kind = "application/x-ndjson" if path.endswith("/batch") else "application/json"
        got = who.ask(method, where, raw=data, headers={**JSON, "Content-Type": kind})
        assert got.status < 500, (method, path, data[:200], got.body[:500])
        if got.status == 422:
            assert all("pointer" in each or "parameter" in each for each in got.json["errors"]), got.body[:500]
        return got

    def bodies(self) -> Iterator[tuple[str, str, str, list[str]]]:
        """Every route that takes a body, with its fields and one that is not known."""
        for method, path, operation in routes(self.api):
            if "requestBody" in operation:
                content = next(iter(operation["requestBody"]["content"].values()))
                fields = self._fields(content["schema"])
                yield method, path, operation[ROLE], [*fields, "not-known"]

    def _fields(self, schema: dict[str, Any]) -> list[str]:
        if "$ref" in schema:
            return self._fields(self.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
        if "anyOf" in schema:
            return self._fields(schema["anyOf"][0])
        return list(schema.get("properties", ()))


def with_field(path: str, field: str, value: bytes) -> bytes:
    rest = {name: each for name, each in BASES.get(path, {}).items() if name != field}
    return b"{%s%s: %s}" % (json.dumps(rest)[1:-1].encode() + b"," * bool(rest), json.dumps(field).encode(), value)


def test_odd_values_everywhere(api: Api) -> None:
    target = Target(api)
    names = cycle(VALUES)
    asked = 0
    for method, path, role, fields in target.bodies():
        for name in (*islice(names, 2), "half a pair in a key"):
            got = target.ask(method, path, role, VALUES[name])
            assert got.status >= 400 or name not in ALWAYS_REFUSED or path.endswith("/batch"), (method, path, name)
        for field in fields:
            name = next(names)
            got = target.ask(method, path, role, with_field(path, field, VALUES[name]))
            assert got.status >= 400 or name not in ALWAYS_REFUSED or path.endswith("/batch"), (method, path, field)
            asked += 1
    assert asked > 150


@pytest.mark.soak
@pytest.mark.timeout(1_000)
def test_every_odd_value_in_every_field(both: Api) -> None:
    target = Target(both)
    for method, path, role, fields in target.bodies():
        for value in VALUES.values():
            target.ask(method, path, role, value)
            for field in fields:
                target.ask(method, path, role, with_field(path, field, value))


def test_what_is_said_about_it(api: Api) -> None:
    """The status, and the place: a pointer into the body, or a parameter."""
    job = json.dumps(JOB).encode()[:-1]
    fields = b"," + b",".join(b'"k%d": 1' % number for number in range(60_000)) + b"}"
    entries = b'"schedule": [%s]}' % b",".join([b'{"cron": "* * * * *", "x": 1}'] * 5_000)
    cases: list[tuple[bytes, int, str | None]] = [
        (job + rb', "payload": {"a": [1, {"b": "\ud83d"}]}}', 422, "/payload/a/1/b"),
        (job + rb', "payload": {"a": {"\udc00": 1}}}', 422, "/payload/a"),
        (job + rb', "payload": {"a": "\ud83d\ude00"}, "name": "whole"}', 422, ""),  # the name is written twice
        (job + b', "payload": {"x": [{"a": 1, "a": 2}]}}', 422, "/payload/x/0"),
        (job + b', "payload": {"x": %s}}' % deep(40), 422, "/payload/x" + "/a" * 30),
        (job + b', "payload": {"x": 1e999}}', 400, None),
        (job + b', "timeout": 1e308}', 422, "/timeout"),
        (job + b', "priority": %s}' % (b"9" * 400), 422, "/priority"),
        (job + fields, 422, ""),
        (b'{"name": "a", "run": {"command": ["x"]}, ' + entries, 422, "/schedule"),
        (job + b', "payload": {"x": "%s"}}' % (b"x" * 300_000), 422, "/payload"),
        (job + b', "run": {"command": [%s"x"]}}' % (b'"x",' * 90_000), 422, ""),
        (b'{"name": "\xff"}', 400, None),
        (b"\xef\xbb\xbf{}", 400, None),
        ("{}".encode("utf-16"), 400, None),
        (b"[]", 422, ""),
        (b'"x"', 422, ""),
    ]
    for data, status, place in cases:
        got = api.ask("POST", "/jobs", raw=data, headers=JSON)
        assert got.status == status, (data[:120], got.body[:300])
        assert place is None or got.places[0] == place, (data[:120], got.body[:300])
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "application/jsonx"):
        assert api.ask("POST", "/jobs", raw=b"{}", headers={"Content-Type": kind}).status == 415
    for path, kind in (("/jobs", "application/json"), ("/jobs/batch", "application/x-ndjson")):
        packed = {"Content-Type": kind, "Content-Encoding": "gzip"}
        assert "Content-Encoding" in api.post(path, raw=gzip.compress(b"{}"), headers=packed, status=415)["detail"]
    assert api.get("/jobs") == {"jobs": [], "next": None}


def test_odd_addresses(api: Api) -> None:
    many = "&".join(f"a{number}=1" for number in range(2_000))
    refused = api.ask("GET", f"/jobs?{many}")
    assert (refused.status, len(refused.json["errors"]), refused.json["errors_left_out"]) == (422, 1_000, 1_000)
    cases = {
        "/jobs?text=" + "x" * 16_400: 414,
        "/jobs?" + "a=1&" * 10_000: 414,
        "/jobs?" + "a=1&" * 20_000: 400,
        "/jobs?text=%00": 400,
        "/jobs/a%00b": 400,
        "/jobs?text=%ff%fe": 200,
        "/jobs?text=%ed%a0%80": 200,  # half a pair, as bytes
        "/jobs/%ed%a0%80": 404,
        "/jobs?tenant=%ed%a0%80": 200,
        "/jobs?cursor=" + "A" * 2_001: 422,
        "/jobs?cursor=WyJcdWQ4MDAiLCJhIl0": 422,  # ["\ud800","a"]
        "/jobs?cursor=WzFlOTk5XQ": 422,  # [1e999]
        "/runs?cursor=WzkyMjMzNzIwMzY4NTQ3NzU4MDhd": 422,  # [9223372036854775808]
        "/runs/9223372036854775808": 422,
        "/runs/" + "9" * 5_000: 404,
        "/runs/-1": 404,
        "/runs/1.5": 404,
        "/runs?from=" + "9" * 60: 422,
        "/jobs/" + "a" * 201: 422,
        "/jobs?limit=1&limit=2": 422,
        "/jobs?limit=%D9%A1": 422,  # a digit one of another script
    }
    for path, status in cases.items():
        got = api.ask("GET", path)
        assert got.status == status, (path[:100], got.status, got.body[:300])
    header = {"X-Request-Id": "x" * 30_000, "If-Match": "y" * 30_000}
    assert api.ask("GET", "/me", headers=header).status == 200


def test_a_batch_of_mistakes_is_answered_in_bounded_work(api: Api) -> None:
    ndjson = {"Content-Type": "application/x-ndjson"}
    odd = json.dumps({"name": "x", **{f"k{number}": 1 for number in range(50)}}).encode()
    good = json.dumps(JOB).encode()
    lines = [good, b"[1]", b"{", b"\xff", rb'{"name": "\ud800"}', deep(10_000), b"x" * (1024 * 1024 + 1), *[odd] * 300]
    told = api.post("/jobs/batch", raw=b"\n".join([*lines, good]), headers=ndjson)
    assert told["counts"] == {"created": 1, "refused": 307}
    reasons = [each["reason"] for each in told["items"]]
    assert "the line is longer than 1,024 KiB" in reasons[6]
    assert (len(told["items"][7]["errors"]), "32 more than are told" in reasons[7]) == (20, True)
    assert reasons[-1].startswith("not looked at: the lines before have 10,")
    lines = [b'{"name": "n%d"}' % number for number in range(20_001)]
    assert "20,000 at most" in api.post("/jobs/batch", raw=b"\n".join(lines), headers=ndjson, status=413)["detail"]


def test_whoever_is_slow_is_cut_off(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that does not come, a head that does not end in time or at all; others are answered meanwhile."""
    monkeypatch.setattr(envelope, "BODY_S", 0.3)
    monkeypatch.setattr(wire, "HEAD_S", 0.3)
    place = urlsplit(api.url)

    def sent(data: bytes, more: bytes = b"") -> bytes:
        with socket.create_connection((place.hostname, place.port), timeout=30) as connection:
            connection.sendall(data)
            assert api.get("/me")["name"] == "ann"
            try:
                for _ in range(64 if more else 0):
                    connection.sendall(more)
                answer = b""
                while piece := connection.recv(65_536):  # until the server ends it
                    answer += piece
            except ConnectionError:
                return b"reset"
            return answer

    head = (
        f"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api._key}\r\nContent-Type: application/json"
    )
    slow = sent(f"{head}\r\nContent-Length: 100\r\n\r\n{{".encode())
    assert slow.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"too_slow"' in slow
    assert sent(f"{head}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{{".encode()).startswith(b"HTTP/1.1 408 ")
    assert sent(head.encode()) == b""
    assert sent(b"") == b""
    assert sent(b"GET /" + b"a" * 70_000, b"a" * 8_192) in (b"reset", wire._TOO_LARGE)
    assert sent(b"GET / HTTP/1.1\r\nX: ", b"b" * 8_192) in (b"reset", wire._TOO_LARGE)
    assert sent(b"\x16\x03\x01 not HTTP at all\r\n\r\n").startswith(b"HTTP/1.1 400 ")
