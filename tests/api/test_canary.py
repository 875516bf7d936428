"""Canaries through the API of a real node: secrets, keys, cookies and the signing secret are in no answer, whoever asks
for what, in no line of the log, and in no file of the database.

Jobs that repeat their secret succeed and fail, a worker over HTTP gets one, keys are made, misused and revoked; then
every GET of the document is asked, for every job and every run.
"""

import base64
import re
from typing import Any

import pytest
import yaml

from fleetcron.api.session_cookie import NAME
from tests.api.server import Answer, Api
from tests.api.test_walk import routes
from tests.cli.folder import Folder
from tests.plan.test_canary import CANARY, FILE, FUNCTION, SAY, assert_not_stored, echo

SIGNING = "signing-canary-0123456789-abcdef"
QUERIES: dict[str, dict[str, Any]] = {"why": {"at": "2027-01-15T08:01:00Z"}, "diff": {"from_": 1}}


class Remote(Api):
    """A server elsewhere. It keeps everything that it was answered."""

    def __init__(self, url: str, key: str) -> None:
        self.url, self._key, self.heard = url, key, []  # type: list[str]

    def ask(self, *words: Any, **more: Any) -> Answer:
        got = super().ask(*words, **more)
        kept = {name: value for name, value in got.headers.items() if name != "set-cookie"}
        self.heard.append(f"{kept} {got.body.decode()}")
        return got


@pytest.mark.timeout(120)
def test_no_canary_is_in_any_answer_or_line(quick: Folder) -> None:
    env = {
        "FLEETCRON_NODE__ROLES": "scheduler,worker,api",
        "FLEETCRON_SECRET_TOKEN": CANARY,
        "FLEETCRON_EXECUTOR__INTERNAL": "127.0.0.1",
        "FLEETCRON_EXECUTOR__HANDLERS": "shop_canary",
        "FLEETCRON_EXECUTOR__SIGNING_SECRET": base64.b64encode(SIGNING.encode()).decode(),
        "PYTHONPATH": str(quick.path),
    }
    quick.write("shop_canary.py", FUNCTION)
    quick.write("say.sh", SAY)
    with (
        echo() as (port, heard),
        quick.serving("--listen", "0", "--log-level", "debug", "--log-format", "json", **env) as node,
    ):
        address = re.search(r"http://127\.0\.0\.1:\d+", node.until("The API is at"))
        assert address
        key = quick.json("keys", "create", "ann", "--role", "admin", "--rate", "600000")["key"]
        api = Remote(address[0], key)
        jobs = yaml.safe_load(FILE.replace("PORT", str(port)).replace("HERE", str(quick.path)))["jobs"]
        jobs.append({**jobs[2], "name": "elsewhere", "pool": "http"})
        runs = {job["name"]: triggered(api, job) for job in jobs}
        secrets = [key, *worked_elsewhere(api, runs.pop("elsewhere")), *misused(api)]
        for run in runs.values():
            ended = api.ask("GET", f"/runs/{run}/log/stream")  # until it is final
            assert ended.body.endswith(b"event: end\ndata: {}\n\n")
        states = {name: api.get(f"/runs/{run}")["state"] for name, run in runs.items()}
        assert states == {"command": "dead", "call": "succeeded", "function": "dead", "missing": "dead"}
        assert walked(api) > 55
        said = "".join(api.heard) + node.stop()
    assert heard == [f'Bearer {CANARY} {{"key":"{CANARY}"}}']  # the handlers had it
    assert "***" in said
    for canary in (CANARY, SIGNING, env["FLEETCRON_EXECUTOR__SIGNING_SECRET"], *secrets):
        assert canary not in said
        assert all(canary.encode() not in path.read_bytes() for path in quick.path.glob("fleetcron.db*"))
    assert_not_stored(quick.path)


def triggered(api: Remote, job: dict[str, Any]) -> int:
    tenant = job.get("tenant", "default")
    api.post("/jobs", job, 201)
    api.post("/jobs", job, 409)
    api.post("/jobs/preview", {**job, "name": "another"})
    api.post("/jobs", {**job, "retyr": 1, "timeout": "secret://token"}, 422)
    api.patch(f"/jobs/{job['name']}", {"description": "x"}, headers={"If-Match": "*"}, tenant=tenant)
    run_id: int = api.post(f"/jobs/{job['name']}/trigger", status=202, tenant=tenant)["run_id"]
    return run_id


def worked_elsewhere(api: Remote, run_id: int) -> list[str]:
    """By a worker that resolves the secret itself, which is told the name alone. What it prints is its own affair."""
    key: str = Api.ask(api, "POST", "/keys", {"name": "host", "role": "worker", "pools": ["http"]}).json["key"]
    me = api.post("/workers", {"name": "w", "pools": {"http": 1}}, 201, key=key)["worker_id"]
    ask = {"pool": "http", "wait_s": 20, "resolves_secrets": True}
    [run] = api.post(f"/workers/{me}/claim", ask, key=key)["runs"]
    assert (run["run_id"], run["secrets"], run["payload"]) == (run_id, ["token"], {"key": "secret://token"})
    end = {"run_id": run_id, "attempt": 1, "outcome": "failed", "duration_ms": 0, "error": {"code": "x"}}
    api.post(f"/workers/{me}/finish", {"ends": [end]}, key=key)
    return [key]


def misused(api: Remote) -> list[str]:
    """Keys and cookies where they do not belong, and what is said about it."""
    other: str = Api.ask(api, "POST", "/keys", {"name": "eve", "role": "viewer"}).json["key"]
    key_id = other.split("_")[1]
    login = api.ask("POST", "/session", key=other)
    cookie = login.headers["set-cookie"].partition(";")[0].removeprefix(f"{NAME}=")
    for method, path, status in (
        ("GET", f"/jobs/{other}", 404),
        ("GET", f"/jobs?tenant={other}", 200),
        ("POST", f"/keys/{other}/revoke", 404),
        ("POST", "/holds", 422),
    ):
        got = Api.ask(api, method, path, {"reason": "x"} if method == "POST" else None)
        assert got.status == status, got.body
        api.heard.append(got.body.decode() if "/jobs/" not in path else "")  # a name is said back to whoever asks
    for header in (f"Bearer {other}x", f"Basic {other}", other):
        assert api.ask("GET", "/me", headers={"Authorization": header}).status == 401
    assert api.ask("GET", "/me", headers={"Authorization": "", "Cookie": f"{NAME}={cookie}x"}).status == 401
    api.post(f"/keys/{key_id}/revoke", {"reason": "it leaked"})
    assert api.get("/me", 401, key=other)["code"] == "unauthenticated"
    return [other, other.split("_")[2], cookie]


def walked(api: Remote) -> int:
    """Every GET, for every job and run that there is."""
    jobs = [(each["tenant"], each["name"]) for each in api.get("/jobs")["jobs"]]
    runs = [each["run_id"] for each in api.get("/runs")["runs"]]
    asked = 0
    for method, path, operation in list(routes(api)):
        if method != "GET" or path in ("/session", "/calendars/{name}", "/runs/{run_id}/log/stream"):
            continue  # there is none; or it was heard to its end
        query = QUERIES.get(path.rpartition("/")[2], {}) if "/jobs/" in path else {}
        known = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
        names = [("default", "default")] if path.startswith("/tenants") else jobs if "{name}" in path else [("", "")]
        for tenant, name in names:
            for run_id in runs if "{run_id}" in path else [0]:
                more = {"tenant": tenant} if tenant and "tenant" in known else {}
                got = api.ask("GET", path.format(name=name, run_id=run_id), **query, **more)
                assert got.status == 200, (path, got.body)
                asked += 1
    for path in ("//healthz", "//readyz", "//openapi.json", "//docs", "//nothing"):
        api.ask("GET", path)
    return asked
