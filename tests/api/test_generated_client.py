"""A stranger makes a client from the OpenAPI document with a generator from PyPI, and uses it: the very command and
the very program of docs/learn/api.md, against a real node with a key."""

import os
import re
import shlex
import subprocess
import sys
import urllib.request
from itertools import pairwise
from pathlib import Path

from tests.cli.folder import Folder
from tests.house.blocks import ROOT, blocks

PAGE = ROOT / "docs/learn/api.md"
MINE = "tests/api/test_generated_client.py"
HERE = "http://localhost:8470"
MORE = """
    # on with the same client: NDJSON, mistakes with their places, and a key that is none
    from fleetcron_client.api.jobs import batch_jobs, list_jobs
    from fleetcron_client.models import BatchJobsMode
    from fleetcron_client.types import File

    lines = b'{"name": "a", "schedule": {"every": "1h"}, "run": {"command": ["true"]}}\\n{"name": "b", "when": 1}\\n'
    batch = batch_jobs.sync(client=client, body=File(lines), mode=BatchJobsMode.CREATE)
    assert [item.done for item in batch.items] == ["created", "refused"], batch
    assert "/when" in [mistake.pointer for mistake in batch.items[1].errors], batch
    assert [line.name for line in list_jobs.sync(client=client).jobs] == ["a", "hello"]

    wrong = create_job.sync(client=client, body=JobShape("Hello!", CronShape("61 2 * * *"), CommandShape(["echo"])))
    assert (wrong.status, wrong.code) == (422, "invalid"), wrong
    assert [place.pointer for place in wrong.errors] == ["/name", "/schedule/cron"], wrong
    with AuthenticatedClient(client._base_url, token="x") as stranger:
        assert create_job.sync(client=stranger, body=wanted).status == 401
"""


def block(kind: str, begins: str = "") -> str:
    """Of those that say that they are run here."""
    mine = [each.text for each in blocks(PAGE) if each.kind == kind and each.run_by == MINE]
    [found] = [text for text in mine if text.startswith(begins)]
    return found


def called(curl: list[str], address: str) -> bytes:
    """As curl would, which not every machine has. (The log of a run that is tried again goes on: its beginning is
    enough.)"""
    given = {flag: [value for name, value in pairwise(curl) if name == flag] for flag in ("-H", "-d", "-X")}
    [where] = [word for word in curl if word.startswith("localhost:8470")]
    request = urllib.request.Request(
        where.replace("localhost:8470", address),
        data="".join(given["-d"]).encode() or None,
        headers=dict(header.split(": ", 1) for header in given["-H"]),
        method=next(iter(given["-X"]), None),
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status in (200, 201, 202)
        return bytes(answer.read() if "-sN" not in curl else answer.readline())


def test_a_generated_client_creates_triggers_and_reads_a_job(quick: Folder) -> None:
    quick.write("client.yaml", block("yaml"))
    with quick.serving("--listen", "127.0.0.1:0", FLEETCRON_NODE__ROLES="scheduler,worker,api") as node:
        address = re.search(r"http://[^/]+", node.until("/api/v1"))
        assert address
        key = quick.json("keys", "create", "sdk", "--role", "operator")["key"]
        fetch, generate = block("sh", "curl -s localhost:8470/openapi.json").splitlines()
        curl, file = fetch.split(" > ")
        (quick.path / file).write_bytes(called(shlex.split(curl), address[0]))
        asked(quick, shlex.split(generate))
        program = block("python").replace(HERE, address[0]) + MORE
        asked(quick, ["python", "-W", "error", "-c", program], FLEETCRON_API_KEY=key)
        for line in (
            block("sh", "curl -s localhost:8470/api/v1/jobs")
            .replace("\\\n", " ")
            .replace("$FLEETCRON_API_KEY", key)
            .splitlines()
        ):
            called(shlex.split(line), address[0])
        node.stop()


def asked(folder: Folder, command: list[str], **env: str) -> None:
    """A warning of the generator is a fault of our document: it leaves out what it does not understand."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder.path,
        env={**os.environ, "PATH": path, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "arning" not in said, said
