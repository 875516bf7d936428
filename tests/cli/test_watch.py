"""Lists that are shown again and again, `fleetcron top`, and what a shell completes."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.cli.folder import Folder
from tests.cli.test_runs import Past
from tests.cli.test_runs import past as past
from tests.store.floor import Floor

JOBS = """
jobs:
  - {name: nightly-report, schedule: {cron: "0 2 * * *"}, run: {command: ["true"]}}
  - {name: nightly-load, schedule: {cron: "0 1 * * *"}, run: {command: ["true"]}}
  - {name: other, schedule: {every: 1h}, run: {command: ["true"]}}
  - {name: night-shift, tenant: acme, schedule: {every: 1h}, run: {command: ["true"]}}
"""
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


class Terminal:
    """A command with a terminal; what it has written so far."""

    def __init__(self, process: "subprocess.Popen[bytes]", ours: int) -> None:
        self.process = process
        self.said = ""
        self._ours = ours

    def until(self, pattern: str) -> str:
        until_s = time.monotonic() + 30
        while not re.search(pattern, self.said, re.DOTALL):
            left_s = max(0.0, until_s - time.monotonic())
            assert select.select([self._ours], [], [], left_s)[0], f"{pattern!r} did not come: {self.said[-2000:]!r}"
            try:
                self.said += os.read(self._ours, 65536).decode()
            except OSError:  # it has ended
                raise AssertionError(f"{pattern!r} did not come: {self.said!r}") from None
        return self.said

    def ends(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        while select.select([self._ours], [], [], 30)[0]:
            try:
                found = os.read(self._ours, 65536)
            except OSError:
                break
            self.said += found.decode()
        return self.process.wait(30)


@contextmanager
def in_a_terminal(folder: Folder, *words: str, height: int = 12, **env: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "fleetcron", *words],
        cwd=folder.path,
        env={k: v for k, v in folder._environment(env).items() if k not in ("LINES", "COLUMNS")},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_list_is_drawn_again_in_place(quick: Folder) -> None:
    quick.write("jobs.yaml", JOBS)
    quick("apply", "-f", "jobs.yaml")
    with in_a_terminal(quick, "jobs", "--watch", "0.1") as terminal:
        terminal.until(r"\[H.*nightly-load.*\[H.*nightly-load")
        assert terminal.said.startswith(ENTER)
        assert "fleetcron jobs, every 0.1 s; Ctrl-C ends it." in terminal.said
        assert "\x1b[32mactive" in terminal.said  # in colour
        quick("jobs", "pause", "other")
        terminal.until("paused")
        assert terminal.ends(signal.SIGINT) == 0
        before, _, after = terminal.said.partition(LEAVE)
        assert "\x1b[?25h" in before[-20:]  # the cursor is back
        assert after.count("NAME") == 1  # the last round stays, once, where the command was given
        assert "paused" in after
        assert "Aborted" not in after
    with in_a_terminal(quick, "events", "--watch", height=5, NO_COLOR="1") as terminal:
        terminal.until(r"… \d+ more lines")
        assert "\x1b[3" not in terminal.said
        assert terminal.ends(signal.SIGTERM) == 128 + signal.SIGTERM
        assert LEAVE in terminal.said
    with in_a_terminal(quick, "top", "--interval", "0.1") as terminal:
        terminal.until(r"\[H.*0 nodes alive.*\[H.*0 nodes alive")
        assert terminal.ends(signal.SIGINT) == 0


def lines_of(folder: Folder, *words: str, rounds: int) -> list[str]:
    """What it appends, until so many lines are there."""
    argv = [sys.executable, "-m", "fleetcron", *words]
    env = folder._environment({})
    with subprocess.Popen(argv, cwd=folder.path, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = [process.stdout.readline() for _ in range(rounds)]
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(30) == 0
    return found


def test_elsewhere_the_rounds_follow_each_other(quick: Folder) -> None:
    quick.write("jobs.yaml", JOBS)
    quick("apply", "-f", "jobs.yaml")
    first, second = map(json.loads, lines_of(quick, "jobs", "--watch", "0.1", "--json", rounds=2))
    assert first == second == quick.json("jobs")
    first, second = map(json.loads, lines_of(quick, "top", "--interval", "0.1", "--json", rounds=2))
    assert first["at"] < second["at"]
    text = lines_of(quick, "pools", "--watch", "0.1", rounds=6)
    assert [line[:4] for line in text] == ["--- ", "NAME", "defa"] * 2
    (quick.path / "fleetcron.db").unlink()
    assert "there is no database" in quick("jobs", "--watch", code=2).stderr


def test_every_list_can_be_watched(quick: Folder) -> None:
    listed = {"jobs", "runs", "nodes", "pools", "shards", "dead", "tenants", "holds", "events", "ledger", "keys"}
    helped = {noun for noun in listed if "--watch [SECONDS]" in quick(noun, "--help").stdout}
    assert helped == listed
    assert "is not in the range" in quick("jobs", "--watch", "0", code=2).stderr


async def busy(f: Floor) -> None:
    """Of one pool: one runs, one waits, one is tried again."""
    for name in ("runs", "fails", "waits"):
        await f.define(name)
    await f.next_minute()
    await f.join("n1", slots=2)
    first, _ = await f.claim("n1", room=2)
    await f.fail("n1", first)


def test_top_shows_the_fleet_at_a_glance(quick: Folder, past: Past) -> None:
    past.tell(busy)
    found: Any = quick.json("top", "--once")
    assert found.keys() >= {"at", "pools", "nodes", "running", "retrying", "dead", "in_flight", "queued", "shards"}
    [pool] = found["pools"]
    assert (pool["name"], pool["in_flight"], pool["workers"], pool["worker_slots"]) == ("default", 1, 1, 2)
    assert pool["queued"] == 1
    assert pool["lag_seconds"] >= 0
    assert [run["state"] for run in (*found["running"], *found["retrying"])] == ["running", "retrying"]
    shown = quick("top", "--once").stdout
    assert "0 nodes alive, 1 running, 1 waiting" in shown
    assert re.search(r"POOL +WORKERS +RUNNING +WAITING +LAG\ndefault +1 +1/2 +1 +\S+", shown)
    assert re.search(r"RUN +JOB +SINCE +TRY +NODE", shown)
    assert "retrying" in shown


# -- completion

# asks for each line of standard input, as a person who presses Tab at its end
ASK = """
source <(fleetcron completion bash)
while IFS= read -r line; do
    read -ra COMP_WORDS <<< "$line"
    [[ $line == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _fleetcron_completion fleetcron
    echo "${COMPREPLY[*]}"
done
"""
ASKED = {
    "fleetcron jo": ["jobs"],
    "fleetcron jobs --wa": ["--watch"],
    "fleetcron jobs show night": ["nightly-load", "nightly-report"],
    "fleetcron jobs pause acme/": ["acme/night-shift"],
    "fleetcron runs --job nightly-r": ["nightly-report"],
    "fleetcron pools set nightly-r": [],  # not a job
    "fleetcron jobs --database postgresql://nobody@127.0.0.1:1/x show night": [],  # and no message
}


def test_a_real_shell_completes(quick: Folder) -> None:
    """bash, which every machine has; zsh and fish get the lines that click has for them."""
    quick.write("jobs.yaml", JOBS)
    quick("apply", "-f", "jobs.yaml")
    command = quick.path / "bin" / "fleetcron"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fleetcron "$@"\n')
    command.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", ASK],
        cwd=quick.path,
        env={**quick._environment({}), "PATH": f"{command.parent}:{os.environ['PATH']}"},
        input="".join(f"{line}\n" for line in ASKED),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    offered = [sorted(line.split()) for line in done.stdout.splitlines()]
    assert dict(zip(ASKED, offered, strict=True)) == ASKED


def test_every_shell_has_its_lines(quick: Folder) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_FLEETCRON_COMPLETE" in quick("completion", shell).stdout
    assert 'eval "$(fleetcron completion bash)"' in quick("completion", "--help").stdout
