"""The whole OpenAPI document against the real server, with requests that nobody would write by hand.

No server error, no status or field that the document does not have, no way around the key. A bounded share here; all
phases on both databases in `make soak`.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetcron.model.access import Role
from tests.api.server import Api, serving
from tests.api.test_jobs import MINUTELY
from tests.api.test_runs import worked

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "ignored_auth",
    "unsupported_method",
)


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
    command = [
        sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run",
        f"{api.url}/openapi.json", "--header", f"Authorization: Bearer {key}", "--checks", ",".join(CHECKS),
        "--warnings", "off", "--continue-on-failure", "--generation-deterministic", "--exclude-path-regex", "/batch$",
        *options,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
    assert " 0 generated" not in done.stdout


def test_a_share_of_what_can_be_sent(populated: Api, tmp_path: Path) -> None:
    fuzzed(populated, Role.ADMIN, tmp_path, "--phases", "fuzzing", "--max-examples", "1", "--max-time", "8")


@pytest.mark.soak
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("role", [Role.ADMIN, Role.WORKER])
def test_all_that_can_be_sent(populated: Api, role: Role, tmp_path: Path) -> None:
    fuzzed(populated, role, tmp_path, "--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "50")
