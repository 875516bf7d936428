"""The whole OpenAPI document against the real server, with requests that nobody would write by hand.

All checks: no server error, no status, header or field that the document does not have, nothing accepted that it
forbids, nothing used after it was deleted, no way around the key. A bounded share here; all phases on both databases
in `make soak`.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetcron.model.access import Role
from fleetcron.policy.access import Limiter
from tests.api.fuzzing import OWN
from tests.api.server import Api, serving
from tests.api.test_jobs import MINUTELY
from tests.api.test_runs import worked

HERE = Path(__file__).parent


@pytest.fixture(params=["postgres18", pytest.param("sqlite", marks=pytest.mark.soak)])
def populated(request: pytest.FixtureRequest) -> Iterator[Api]:
    """A server with something to find."""
    url = ":memory:" if request.param == "sqlite" else str(request.getfixturevalue("postgres18_url"))
    with serving(url) as api:
        admin = api.acting(api.key("ann"))
        admin.post("/jobs", {**MINUTELY, "overlap": "allow"}, 201)
        worked(admin, "succeed", "die", "run")
        yield admin


def fuzzed(api: Api, role: Role, folder: Path, *options: str) -> None:
    key = api.key(f"fuzz-{role}", role, rate=600_000)
    api.context.logins = Limiter(600_000)
    command = [
        sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()",
        "--config-file", HERE / "schemathesis.toml", "run", f"{api.url}/openapi.json",
        "--header", f"Authorization: Bearer {key}", "--warnings", "off", "--continue-on-failure",
        "--generation-deterministic", *options,
    ]  # fmt: skip
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "tests.api.fuzzing", OWN: key.split("_")[1]}
    environment["PYTHONPATH"] = str(HERE.parents[1])
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert re.search(r"Selected: (\d+)/\1\b", done.stdout), done.stdout[-2_000:]  # every operation of the document
    assert " 0 generated" not in done.stdout
    assert api.ask("GET", "/me", key=key).status in (200, 403)  # it had its key to the end


def test_a_share_of_what_can_be_sent(populated: Api, tmp_path: Path) -> None:
    fuzzed(populated, Role.ADMIN, tmp_path, "--phases", "fuzzing", "--max-examples", "1", "--max-time", "4")


@pytest.mark.soak
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("role", [Role.ADMIN, Role.WORKER])
def test_all_that_can_be_sent(populated: Api, role: Role, tmp_path: Path) -> None:
    phases = ("--phases", "examples,coverage,fuzzing,stateful")
    fuzzed(populated, role, tmp_path, *phases, "--max-examples", "50", "--max-time", "600")
