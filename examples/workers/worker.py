"""A worker in sixty lines of Python, with nothing but the standard library: claim, do, say how it ended.

FLEETCRON_API=http://127.0.0.1:8470 FLEETCRON_API_KEY=fck_… python worker.py reports
A job for it: {name: hello, schedule: {every: 1m}, pool: reports, run: {python: "shop:hello"}, payload: {who: you}}
"""

import json
import os
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request

API, KEY, POOL = os.environ["FLEETCRON_API"], os.environ["FLEETCRON_API_KEY"], sys.argv[1]
lost = threading.Event()


def ask(method, path, body=None):
    request = urllib.request.Request(f"{API}/api/v1{path}", json.dumps(body or {}).encode(), method=method)
    request.add_header("Authorization", f"Bearer {KEY}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=40) as response:
        return json.load(response)


def hello(payload, log):  # a handler: what it returns is stored with the run
    log(f"hello {payload['who']}\n")
    return {"greeted": payload["who"]}


HANDLERS = {"python:shop:hello": hello}


def beat(me, every_s):  # without it others get our runs; a worker that cannot renew must stop
    while True:
        time.sleep(every_s)
        try:
            ask("POST", f"/workers/{me}/heartbeat")
        except urllib.error.HTTPError:
            lost.set()  # declared lost: whatever we still do, somebody else does too
            os._exit(1)


def do(me, run):
    began, lines, end = time.monotonic(), [], {"run_id": run["run_id"], "attempt": run["attempt"]}
    try:
        end |= {"outcome": "succeeded", "result": HANDLERS[run["handler"]](run["payload"], lines.append)}
    except Exception as error:
        fault = {"code": type(error).__name__, "text": str(error)[:4000], "trace": traceback.format_exc()[-16000:]}
        end |= {"outcome": "failed", "error": fault}
    piece = {"run_id": run["run_id"], "attempt": run["attempt"], "seq": 0, "text": "".join(lines)}
    ask("POST", f"/workers/{me}/log", {"pieces": [piece]})
    ask("POST", f"/workers/{me}/finish", {"ends": [end | {"duration_ms": int((time.monotonic() - began) * 1000)}]})


joined = ask("POST", "/workers", {"name": "python-example", "pools": {POOL: 1}})
me = joined["worker_id"]
threading.Thread(target=beat, args=(me, joined["heartbeat_ms"] / 1000), daemon=True).start()
print(f"{me} waits for work", flush=True)
while not lost.is_set():
    for run in ask("POST", f"/workers/{me}/claim", {"pool": POOL, "room": 1, "wait_s": 20})["runs"]:
        do(me, run)
