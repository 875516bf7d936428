"""A worker on a page of Python, with nothing but the standard library: claim, do, say how it ended.

FLEETCRON_API_URL=http://127.0.0.1:8470 FLEETCRON_API_KEY=fck_… python worker.py reports
A job for it: {name: hello, schedule: {every: 1m}, pool: reports, run: {python: "shop:hello"}, payload: {who: you}}
"""

import json
import os
import signal
import sys
import threading
import time
import traceback
import urllib.request
import uuid
from contextlib import suppress

API, KEY, POOL = os.environ["FLEETCRON_API_URL"], os.environ["FLEETCRON_API_KEY"], (*sys.argv, "default")[1]
AGAIN = (429, *range(500, 600))  # answers that are others later: too often, or a server that is away for a moment
stopping = threading.Event()


def ask(method, path, body=None, timeout_s=40):
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{API}/api/v1{path}", json.dumps(body or {}).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=timeout_s) as response:
        return json.load(response)


def ask_until_answered(method, path, body):  # `beat` says when that is too long
    while True:
        try:
            return ask(method, path, body)
        except OSError as error:
            if getattr(error, "code", 500) not in AGAIN:
                sys.exit(f"{method} {path}: {error.code}: {error.read().decode(errors='replace')[:500]}")
            time.sleep(int(getattr(error, "headers", {}).get("Retry-After", 1)))


def hello(payload, log):  # a handler: what it returns is stored with the run
    log(f"hello {payload['who']}\n")
    return {"greeted": payload["who"]}


HANDLERS = {"python:shop:hello": hello}


def beat(me, every_s, lease_s):  # without it others get our runs; a worker that cannot renew must stop before that
    until = time.monotonic() + lease_s
    while time.monotonic() + every_s < until:
        time.sleep(every_s / 2)
        sent = time.monotonic()
        try:
            ask("POST", f"/workers/{me}/heartbeat", timeout_s=every_s / 2)
            until = sent + lease_s
        except OSError as error:
            if getattr(error, "code", 500) not in AGAIN:
                break  # declared lost: whatever we still do, somebody else does too
    os._exit(1)


def do(me, run):
    began, lines, key = time.monotonic(), [], {"run_id": run["run_id"], "attempt": run["attempt"]}
    try:
        end = {"outcome": "succeeded", "result": HANDLERS[run["handler"]](run["payload"], lines.append)}
    except Exception as error:
        fault = {"code": type(error).__name__, "text": str(error)[:4000], "trace": traceback.format_exc()[-16000:]}
        end = {"outcome": "failed", "error": fault}
    ask_until_answered("POST", f"/workers/{me}/log", {"pieces": [{**key, "seq": 0, "text": "".join(lines)}]})
    end["duration_ms"] = int((time.monotonic() - began) * 1000)
    ask_until_answered("POST", f"/workers/{me}/finish", {"ends": [{**key, **end}]})


def leave(*_):  # who has left gets nothing from a claim that still waits; who holds a run is refused, and ends it first
    stopping.set()
    with suppress(OSError):
        ask("DELETE", f"/workers/{me}", timeout_s=5)
        os._exit(0)


joined = ask_until_answered("POST", "/workers", {"name": "python-example", "pools": {POOL: 1}})
me, every_s, lease_s = joined["worker_id"], joined["heartbeat_ms"] / 1000, joined["lease_ms"] / 1000
threading.Thread(target=beat, args=(me, every_s, lease_s), daemon=True).start()
signal.signal(signal.SIGTERM, leave)
print(f"{me} waits for work", flush=True)
while not stopping.is_set():
    wish = {"pool": POOL, "room": 1, "wait_s": 20, "batch": str(uuid.uuid4())}  # asked again: the same runs
    for run in ask_until_answered("POST", f"/workers/{me}/claim", wish)["runs"]:
        do(me, run)
leave()
