"""`fleetcron ping` and `fleetcron shadow`, from a crontab to the hand-over.

On SQLite the machine's clock is the fleet's. It is moved so that each test begins in the middle of a minute."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from fleetcron.clock import HandClock
from fleetcron.config import StoreConfig
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import tick
from fleetcron.store.store import Store
from tests.cli.folder import Folder, alive
from tests.store.floor import ok

TAB = """\
MAILTO=ops
# report
* * * * * echo "it's \\% here" >> "$LOG"; exit 3
# fed
* * * * * cat >> "$LOG"%first%second
@reboot /srv/boot
"""
SILENT = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"
JOBS = """\
jobs:
  - {name: report, schedule: {cron: "* * * * *"}, run: {command: ["true"]}, shadow: true}
  - {name: daily, schedule: {cron: "0 2 * * *"}, run: {command: ["true"]}}
"""


def middle() -> int:
    """How many seconds the clock has to be moved to be in the middle of a minute."""
    return 30 - time.time_ns() // 10**9 % 60


def plan(folder: Folder, shift_s: int) -> None:
    """One round of a scheduler."""

    async def once() -> None:
        clock = HandClock(time.time_ns() // 10**6 + shift_s * 1000)
        store = await Store.open(StoreConfig(url=f"sqlite:///{folder.path / 'fleetcron.db'}"), clock)
        try:
            held = ok(await store.shards.take("*", range(16), "test", 60_000))
            await tick(store.cursors, Tables(store.almanac), held, lookahead_ms=60_000)
        finally:
            await store.close()

    asyncio.run(once())


def as_cron(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What cron does with a line: its own folder and environment, % is a line end, and the rest is input."""
    command, *given = line.split(" ", 5)[5].replace("\\%", "\0").split("%")
    env = {"SHELL": "/bin/sh", "HOME": str(folder), "PATH": "/usr/bin:/bin", "LOG": str(folder / "log")}
    text = command.replace("\0", "%")
    return subprocess.run(
        ["/bin/sh", "-c", text],
        cwd=folder,
        env=env,
        input="\n".join([*given, ""]),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_crontab_that_pings(fleetcron: Folder, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The real command in the lines that the import has written, from a folder that knows nothing of us."""
    fleetcron.write("tab", TAB)
    fleetcron("import", "crontab", "tab", "--shadow", "--pings", "new", "-o", "jobs.yaml", "--apply", "--yes", code=1)
    jobs = yaml.safe_load((fleetcron.path / "jobs.yaml").read_text())["jobs"]
    assert [(job["name"], job["shadow"]) for job in jobs] == [("report", True), ("fed", True)]
    said = fleetcron("import", "crontab", "tab", "--shadow", "--pings", ".", "-o", "again.yaml", code=2).stderr
    assert "tab: would be written over with its own pings" in said
    assert (fleetcron.path / "tab").read_text() == TAB
    lines = (fleetcron.path / "new" / "tab").read_text().split("\n")
    assert [line for line in lines if "ping" not in line] == [line for line in TAB.split("\n") if line[:1] != "*"]
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    first = as_cron(lines[2], elsewhere)
    assert (first.returncode, first.stdout, first.stderr) == (3, "", "")
    second = as_cron(lines[4], elsewhere)
    assert (second.returncode, second.stderr) == (0, "")
    assert (elsewhere / "log").read_text() == "it's % here\nfirst\nsecond\n"
    assert sorted(path.name for path in elsewhere.iterdir()) == ["log"]
    found = fleetcron.json("shadow", "report", "fed")["jobs"]
    assert [each["verdict"] for each in found] == ["nothing yet"] * 2


@pytest.mark.parametrize(
    "options",
    [
        ("--database", "postgresql://127.0.0.1:1/none"),
        ("--database", "sqlite:////nowhere/at/all.db"),
        ("--config", "missing.toml"),
        ("--timeout", "soon", "--until", "never"),
    ],
)
def test_the_command_runs_whatever_becomes_of_the_ping(quick: Folder, options: tuple[str, ...]) -> None:
    said = quick("ping", "report", *options, "--", "sh", "-c", "echo ran >> log; exit 5", code=5)
    assert (quick.path / "log").read_text() == "ran\n"
    assert "lost" in said.stderr
    assert said.stdout == ""
    assert quick("ping", "report", "-q", *options[:2], "--", "true").stderr == ""
    assert quick("ping", "report", *options[:2], "--exit-code", "7", code=7).stderr


def test_a_store_that_hangs_costs_the_timeout(fleetcron: Folder) -> None:
    """A port that takes connections and never says a word."""
    server = subprocess.Popen(
        [sys.executable, "-c", SILENT],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        url = f"postgresql://u@127.0.0.1:{int(server.stdout.readline())}/x"
        said = fleetcron(
            "ping", "a", "--timeout", "300ms", "--database", url, "--", "sh", "-c", "echo ran > log", code=0
        )
        assert "has not answered within 0.3 s" in said.stderr
        assert (fleetcron.path / "log").read_text() == "ran\n"
    finally:
        server.communicate("\n")


def test_exit_codes_of_ping(quick: Folder) -> None:
    quick.write("jobs.yaml", JOBS)
    quick("apply", "-f", "jobs.yaml")
    assert quick("ping", "report").stderr == ""
    assert "did you mean default/report" in quick("ping", "reprot", code=2).stderr
    assert "not in shadow" in quick("ping", "daily", code=1).stderr
    assert quick("ping", "report", "--", "sh", "-c", "kill -9 $$", code=137).stderr == ""
    assert "no-such-program: No such file" in quick("ping", "report", "--", "no-such-program", code=127).stderr
    assert "Permission denied" in quick("ping", "report", "--", "/etc/passwd", code=126).stderr
    quick("ping", "report", "--until", "2020-01-01T00:00:00Z", "--", "sh", "-c", "echo ran > log")
    assert not (quick.path / "log").exists(), "the guard of a line whose hand-over is past"
    quick("ping", "report", "--start", "--exit-code", "0", code=2)
    quick("ping", "report", "--until", "2020-01-01T00:00:00Z", code=2)


def test_from_the_report_to_the_hand_over_and_back(quick: Folder) -> None:
    now = middle()
    quick.write("jobs.yaml", JOBS)
    applied = quick("apply", "-f", "jobs.yaml", shift_s=now - 300)
    assert "in shadow" in applied.stdout
    assert "(shadow)" in quick("jobs", shift_s=now).stdout
    assert "in shadow" in quick("jobs", "trigger", "report", code=2, shift_s=now).stderr
    assert "in shadow" in quick("jobs", "backfill", "report", "--from", "10m", code=2, shift_s=now).stderr
    assert "nothing to compare yet" in quick("shadow", shift_s=now).stdout
    plan(quick, now)
    assert "no ping: does its line say fleetcron ping?" in quick("shadow", "report", code=1, shift_s=now).stdout
    for minute in range(-4, 1):
        quick("ping", "report", "--start", "--host", "web1", "--id", f"p{minute}", shift_s=now + minute * 60)
    [report] = quick.json("shadow", "report", shift_s=now)["jobs"]
    assert (report["verdict"], report["ticks"], report["matched"]) == ("same", 5, 5)
    assert report["hand_over_at"] is not None
    quick("ping", "report", "--host", "web2", "--exit-code", "9", "--duration", "1s", code=9, shift_s=now)
    [twice] = quick.json("shadow", "report", code=1, shift_s=now)["jobs"]
    assert (twice["verdict"], twice["doubled"], twice["failed"], twice["hosts"]) == ("differs", 1, 1, ["web1", "web2"])
    assert twice["hand_over_at"] is None
    shown = quick("shadow", "report", code=1, shift_s=now).stdout
    assert "by web1, web2" in shown
    assert "(exit code 9)" in shown
    assert "Name the instant yourself" in quick("shadow", "--hand-over", "report", code=2, shift_s=now).stderr
    assert "Nothing was handed over" in quick("shadow", "--hand-over", "--all", shift_s=now).stdout

    at = "2099-01-01T00:00:00Z"
    refused = quick("shadow", "--hand-over", "report", "--at", at, code=2).stderr
    assert "its ticks would not run: no worker serves the pool default" in refused
    assert "(--anyway" in refused
    assert "could not run here now: no worker serves" in quick("shadow", "report", code=1, shift_s=now).stdout
    done = quick.json("shadow", "--hand-over", "report", "--at", at, "--anyway")["jobs"][0]
    assert (done["done"], done["last_before"], done["first_after"]) == ("handed_over", "2098-12-31T23:59:00Z", at)
    assert "was handed over before" in quick("shadow", "--hand-over", "report", "--at", at).stdout
    assert quick.json("jobs", "show", "report")["definition"]["shadow"] == at
    assert "unchanged" in quick("apply", "-f", "jobs.yaml").stdout, "a file does not take it back"
    back = quick.json("shadow", "--back", "report")["jobs"][0]
    assert (back["done"], back["shadow"]) == ("shadowed", True)
    assert "hand_over" in quick("jobs", "history", "report").stdout
    assert "has passed" in quick("shadow", "--hand-over", "report", "--at", "2020-01-01T00:00:00Z", code=2).stderr
    assert "not in shadow" in quick("shadow", "--hand-over", "daily", code=2).stderr
    for wrong in (["--hand-over"], ["--back"], ["--anyway"], ["--at", at], ["--hand-over", "report", "--at", "soon"]):
        quick("shadow", *wrong, code=2)


def test_all_that_are_the_same_are_handed_over(quick: Folder) -> None:
    now = middle()
    quick.write("jobs.yaml", JOBS)
    quick("apply", "-f", "jobs.yaml", shift_s=now - 60)
    quick("shadow", "--back", "daily", shift_s=now - 60)
    quick("ping", "report", "--start", shift_s=now)
    plan(quick, now)
    assert [each["verdict"] for each in quick.json("shadow", shift_s=now)["jobs"]] == ["nothing yet", "same"]
    refused = quick("shadow", "--hand-over", "--all", code=2, shift_s=now).stderr
    assert "default/report is not handed over" in refused
    alive(quick, {"default": 1})
    said = quick("shadow", "--hand-over", "--all", shift_s=now).stdout
    assert "default/report: handed over, at" in said
    assert "daily" not in said
    assert "--until T -- COMMAND" in said
