"""An app in a script: handler hosts are processes of their own, and must find what is called `__main__` here."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from fleetcron import Fleetcron
from fleetcron.app.importable import NotImportable, main_name
from fleetcron.app.running import forbidden, prepared
from fleetcron.errors import ConfigError, RefusedError
from tests.cli.folder import Folder, Serving

ROOT = Path(__file__).parents[2]
JOBS = """
from fleetcron import Fleetcron

app = Fleetcron("sqlite:///fleetcron.db")

@app.job(every="1s", payload={"kind": "full"})
def report(ctx, payload):
    return [__name__, payload["kind"]]

@app.job(every="1h")
async def load_orders():
    return __name__
"""
PROBE = """
if __name__ == "__main__":
    from tests.app.probe import probe
    probe(app)
"""
RUN = """
if __name__ == "__main__":
    app.run()
"""
STUBBORN = """
import asyncio
from fleetcron import Fleetcron

app = Fleetcron("sqlite:///fleetcron.db")

@app.job(every="1s", timeout="1s", retry={"max_attempts": 1})
async def stubborn():
    while True:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            print("goes on", flush=True)
"""


def environment(**more: str) -> dict[str, str]:
    ours = {key: value for key, value in os.environ.items() if not key.startswith(("FLEETCRON_", "DATABASE_URL"))}
    paths = os.pathsep.join([str(ROOT), ours.get("PYTHONPATH", "")])
    return {**ours, "PYTHONPATH": paths, "PYTHONWARNINGS": "error", **more}


@contextmanager
def started(folder: Path, script: str, **more: str) -> Iterator[Serving]:
    process = subprocess.Popen(
        [sys.executable, script],
        cwd=folder,
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    node = Serving(process)
    try:
        yield node
    finally:
        node.end()


def python(folder: Path, *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr if code else done.stdout


@pytest.mark.parametrize("words", [["jobs.py"], ["-m", "jobs"]])
def test_a_script_is_imported_by_its_file_name(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "jobs.py").write_text(JOBS + PROBE)
    assert python(tmp_path, *words).splitlines() == ['called: ["jobs","full"]', 'called: "jobs"']


def test_a_script_in_another_folder_and_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "jobs.py").write_text(JOBS + PROBE)
    (tmp_path / "start.py").symlink_to(tmp_path / "real" / "jobs.py")
    for script in ("real/jobs.py", "start.py"):
        assert python(tmp_path, script).splitlines() == ['called: ["jobs","full"]', 'called: "jobs"']


def test_a_module_of_a_package(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__main__.py").write_text(JOBS + PROBE)
    assert python(tmp_path, "-m", "shop").splitlines()[1] == 'called: "shop.__main__"'


def test_a_script_that_runs_a_node_when_it_is_imported(tmp_path: Path) -> None:
    """It would start a node in every handler host, and each of them hosts again."""
    (tmp_path / "jobs.py").write_text(JOBS + PROBE + "else:\n    app.run()\n")
    said = python(tmp_path, "jobs.py")
    assert said.count("unknown: jobs cannot be imported: ") == 2
    assert (
        'app.run() was called while a handler host imports the module; write it under: if __name__ == "__main__":'
        in said
    )
    assert not (tmp_path / "fleetcron.db").exists()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("my-jobs.py", "my-jobs.py cannot be imported under its name; call it jobs.py, say"),
        ("jobs", "jobs cannot be imported under its name"),
        ("json.py", "json.py has the name of a module of Python itself; rename it"),
    ],
)
def test_a_script_that_cannot_be_imported(tmp_path: Path, name: str, reason: str) -> None:
    main = ModuleType("__main__")
    main.__file__ = str(tmp_path / name)
    (tmp_path / name).touch()
    with pytest.raises(NotImportable, match=reason.replace(".", r"\.")):
        main_name(main)


def test_a_script_that_another_module_hides(tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "jobs.py").write_text(JOBS + RUN)
    (tmp_path / "jobs.py").touch()
    said = python(tmp_path, "away/jobs.py", code=1)
    assert f"__main__:report: 'import jobs' finds {tmp_path / 'jobs.py'} first; rename" in said


def test_what_was_typed_at_a_prompt(tmp_path: Path) -> None:
    said = python(tmp_path, "-c", JOBS + "print(report(None, {'kind': 'by hand'}))\n" + RUN, code=1)
    assert "['__main__', 'by hand']" in said
    assert "DefinitionError: __main__:report: it was not read from a file, so no worker can import it" in said
    assert not (tmp_path / "fleetcron.db").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_run_syncs_plans_and_works_until_it_is_stopped(tmp_path: Path, quick: Folder, number: signal.Signals) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "jobs.py").write_text(JOBS + RUN)
    with started(tmp_path, "away/jobs.py", DATABASE_URL="postgresql://not@127.0.0.1:1/ours") as node:
        node.until("jobs of app:app: 2 created")
        node.until(" took ")  # it has joined
        [seen] = quick.json("nodes")["nodes"]
        assert seen["roles"] == ["scheduler", "worker"]
        while not quick.json("runs", "--job", "report", "--state", "succeeded")["runs"]:
            assert node.process.poll() is None
        node.stop(number)
    assert quick.json("nodes")["nodes"] == []


def test_the_settings_of_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing needs to be said twice: the functions of the app are handlers. What the code says wins."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", "postgresql://me@db/other")
    (tmp_path / "fleetcron.toml").write_text('[executor]\nhandlers = ["shop.more"]\n[node]\nname = "one"\n')
    app = Fleetcron("sqlite:///own.db")
    app.job(every="1h")(a_job)
    app.job(every="2h", name="again", pool="reports")(a_job)
    config = prepared(app)
    assert config.store.url == "sqlite:///own.db"
    assert config.executor.handlers == ("shop.more", f"{__name__}:a_job")
    assert config.worker.slots() == {"default": 10, "reports": 10}
    assert (config.node.name, config.node.roles) == ("one", ("scheduler", "worker"))
    assert prepared(Fleetcron()).store.url == "postgresql://me@db/other"
    monkeypatch.setenv("FLEETCRON_NODE__ROLES", "scheduler")
    monkeypatch.setenv("FLEETCRON_WORKER__POOLS", "default=3")
    assert prepared(app).node.roles == ("scheduler",)
    assert prepared(app).worker.slots() == {"default": 3}
    with pytest.raises(ConfigError, match=r"Fleetcron\(url\): there is no store for mysql://"):
        prepared(Fleetcron("mysql://x"))
    with forbidden("while app.run() is at work"), pytest.raises(RefusedError, match="was called while"):
        prepared(app)


def a_job() -> None:
    pass


def test_a_coroutine_that_swallows_what_cancels_it_does_not_keep_the_process(tmp_path: Path) -> None:
    """With isolation inline it is in this process, and asyncio would wait for it for ever."""
    (tmp_path / "jobs.py").write_text(STUBBORN + RUN)
    inline = {"FLEETCRON_EXECUTOR__ISOLATION": "inline", "FLEETCRON_EXECUTOR__GRACE": "0.2"}
    with started(tmp_path, "jobs.py", **inline) as node:
        node.until("goes on")
        node.until("dead: timeout")  # given up
        node.stop()
