"""What `make run` starts, and what it promises to show."""

import shutil
from pathlib import Path

import pytest

from tests.cli.folder import Folder

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def demo(quick: Folder) -> Folder:
    for name in ("demo.yaml", "demo.py"):
        shutil.copy(EXAMPLES / name, quick.path)
    return quick


def test_the_jobs_of_make_run_do_what_they_say(demo: Folder) -> None:
    """S0-7, S1-16: a command, a function, one that fails and is tried again, one that never succeeds. (The Makefile has
    the same flags.)"""
    here = {"FLEETCRON_DATABASE_URL": "sqlite:///demo.db", "PYTHONPATH": str(demo.path)}
    with demo.serving("-f", "demo.yaml", "--app", "demo:app", **here) as node:
        node.until("Look at it")
        assert {job["name"] for job in demo.json("jobs", **here)["jobs"]} == {
            *("hello", "slow-export", "report", "flaky", "broken"),
        }
        demo("jobs", "pause", "slow-export", **here)  # or a stop waits for its twelve seconds
        asked = {
            name: demo.json("jobs", "trigger", name, **here)["run_id"]
            for name in ("hello", "report", "flaky", "broken")
        }
        said = {name: demo("runs", "log", str(run_id), "--follow", **here).stdout for name, run_id in asked.items()}
        told = {name: demo.json("runs", "show", str(run_id), **here) for name, run_id in asked.items()}
        node.stop()
    assert {name: (each["state"], each["attempt"]) for name, each in told.items()} == {
        "hello": ("succeeded", 1),
        "report": ("succeeded", 1),
        "flaky": ("succeeded", 3),
        "broken": ("dead", 2),
    }
    assert f"hello from run {asked['hello']}, attempt 1" in said["hello"]
    assert "the report of " in said["report"]


def test_make_run_starts_these_files() -> None:
    recipe = (EXAMPLES.parent / "Makefile").read_text("utf-8")
    assert "-m fleetcron serve -f examples/demo.yaml --app demo:app" in recipe
    assert "PYTHONPATH=examples" in recipe
