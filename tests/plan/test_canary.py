"""A canary secret through a real node: the handlers get it, and nobody else ever sees it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from tests.plan.conftest import Moments

CANARY = "canary-8d41c07b6e"

FILE = """
jobs:
  - name: command
    schedule: {every: 30d}
    run:
      command: [sh, say.sh]
      env: {TOKEN: "secret://token"}
      cwd: HERE
    payload: {key: "a secret://token b"}
    retry: {max_attempts: 1}
  - name: call
    schedule: {every: 30d}
    run: {http: {url: "http://127.0.0.1:PORT/echo", headers: {Authorization: "Bearer secret://token"}}}
    payload: {key: "secret://token"}
  - name: function
    schedule: {every: 30d}
    run: {python: "shop_canary:work"}
    payload: {key: "secret://token"}
    retry: {max_attempts: 1}
  - name: missing
    tenant: acme
    schedule: {every: 30d}
    run: {command: ["true"]}
    payload: {key: "secret://token"}
    retry: {max_attempts: 1}
"""

SAY = """
echo env $TOKEN; cat; echo; echo $TOKEN >&2
printf %s $TOKEN > got
test -z "$FLEETCRON_SECRET_TOKEN" && exit 3
"""

FUNCTION = """
import os

def work(ctx, payload):
    assert "FLEETCRON_SECRET_TOKEN" not in os.environ
    print(payload["key"])
    ctx.log("again " + payload["key"])
    ctx.progress(0.5, payload["key"])
    open("function-got", "w").write(payload["key"])
    raise ValueError("no good: " + payload["key"])
"""


@contextmanager
def echo() -> Iterator[tuple[int, list[str]]]:
    """A server that answers with what it was sent, headers and all."""
    heard: list[str] = []

    class Echo(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            heard.append(f"{self.headers['Authorization']} {body}")
            answer = json.dumps({"headers": dict(self.headers), "body": body}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002

    with HTTPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], heard
        server.shutdown()


def test_a_canary_is_nowhere_but_in_the_hands_of_handlers(moments: Moments) -> None:
    secret = {"FLEETCRON_SECRET_TOKEN": CANARY, "FLEETCRON_EXECUTOR__INTERNAL": "127.0.0.1"}
    handlers = {"FLEETCRON_EXECUTOR__HANDLERS": "shop_canary", "PYTHONPATH": str(moments.path)}
    said: list[str] = []

    def ask(*words: str, **options: Any) -> Any:
        told = moments(*words, "--json", **options, **secret)
        said.append(told.stdout + told.stderr)
        return told

    with echo() as (port, heard):
        moments.write("jobs.yaml", FILE.replace("PORT", str(port)).replace("HERE", str(moments.path)))
        moments.write("shop_canary.py", FUNCTION)
        moments.write("say.sh", SAY)
        ask("plan", "jobs.yaml", code=2)
        ask("apply", "jobs.yaml")
        runs = {
            name: ask("jobs", "trigger", name).json["run_id"]
            for name in ("command", "call", "function", "acme/missing")
        }
        with moments.serving("--log-level", "debug", "--log-format", "json", **secret, **handlers) as node:
            final = {name: followed(ask, run) for name, run in runs.items()}
            said.append(node.stop())
    # the handlers had it
    assert (moments.path / "got").read_text() == CANARY
    assert (moments.path / "function-got").read_text() == CANARY
    assert heard == [f'Bearer {CANARY} {{"key":"{CANARY}"}}']
    # and said it, and it was hidden
    assert final == {"command": "dead", "call": "succeeded", "function": "dead", "acme/missing": "dead"}
    logs = {name: ask("runs", "log", str(run)).stdout for name, run in runs.items()}
    assert all("***" in logs[name] for name in ("command", "call", "function"))
    shown = {name: ask("runs", "show", str(run)).json for name, run in runs.items()}
    [attempt] = shown["function"]["attempts"]
    assert "no good: ***" in attempt["error"]["text"]
    assert shown["call"]["payload"] == {"key": "secret://token"}
    [attempt] = shown["command"]["attempts"]
    assert (attempt["error"]["code"], attempt["error"]["text"]) == ("exit_3", "exit code 3: ***")
    [attempt] = shown["acme/missing"]["attempts"]
    assert attempt["error"]["code"] == "secret_missing"
    assert "this worker has no secret token of the tenant acme: write it to" in attempt["error"]["text"]
    for words in (["export"], ["export", "--full"], ["jobs"], ["runs"], ["dead"], ["events"], ["ledger"], ["nodes"]):
        ask(*words)
    for words in (
        ["config", "show"],
        ["jobs", "show", "command"],
        ["jobs", "history", "call"],
        ["why", str(runs["call"])],
    ):
        ask(*words)
    assert CANARY not in "".join(said)
    assert_not_stored(moments.path)


def followed(ask: Any, run: int) -> str:
    """The state of a run when it is final: `runs log --follow` ends then."""
    ask("runs", "log", str(run), "--follow")
    return str(ask("runs", "show", str(run)).json["state"])


def assert_not_stored(folder: Path) -> None:
    files = [path for path in folder.iterdir() if path.name.startswith("fleetcron.db")]
    assert files
    for path in files:
        content = path.read_bytes()
        assert CANARY.encode() not in content
        assert b"secret://token" in content or path.name != "fleetcron.db"
