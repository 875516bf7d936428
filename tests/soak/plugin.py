"""`make soak` for whoever watches: one bar over all long tests, where the running ones are, and a page at the end.

The tests run in processes of their own whose output is captured; they write down where they are (`rounds.py`), and the
process that leads them reads it. On a terminal it is one line that changes, elsewhere a line each half minute.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from time import time
from typing import Any, Final

import pytest

from tests.soak import page
from tests.soak.rounds import FOLDER, Now

EVERY_S: Final = 30.0  # between two lines, where there is no terminal
UNKNOWN_S: Final = 5.0  # how long a test takes of which nobody knows
WIDTH: Final = 24
_GROUP: Final = re.compile(r"@[a-z0-9_]+$")
_ERR: Final = os.dup(2)  # before anything is captured: without xdist the tests run in this process


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.pluginmanager.register(Watcher(FOLDER), "soak-watcher")


class Watcher:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.began = time()
        self.terminal = os.isatty(_ERR)
        self.wanted: set[str] = set()
        self.running: dict[str, float] = {}
        self.tests: dict[str, page.Test] = {}
        self._before: Mapping[str, float] = _durations(folder)
        self._stop = Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._shown = False

    # -- what pytest tells

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        self._begin(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._begin([item.nodeid for item in session.items])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.running[_plain(nodeid)] = time()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = _plain(report.nodeid)
        known = self.tests.get(name, page.Test(name, "passed", 0.0))
        outcome = known.outcome if report.outcome == "passed" else report.outcome
        self.tests[name] = page.Test(name, outcome, known.seconds + report.duration)
        if report.when == "teardown":
            self.running.pop(name, None)
            if self.tests[name].outcome == "failed":
                self._say(f"FAILED {name}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport | pytest.CollectReport) -> tuple[str, str, str] | None:
        """No dots between the lines; whatever did not pass is told as ever."""
        return ("passed", "", "") if report.passed and report.when == "call" else None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._clear()
        _remember(self.folder, {**self._before, **{each.name: each.seconds for each in self.tests.values()}})

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.tests:
            path = page.write(self.folder, list(self.tests.values()), time() - self.began)
            for line in page.summary(self.folder):
                terminalreporter.write_line(line)
            terminalreporter.write_line(f"the report: {path}")

    # -- what people see

    def _begin(self, ids: list[str]) -> None:
        self.wanted |= {_plain(each) for each in ids}
        if self.wanted and not self._thread.is_alive() and not self._stop.is_set():
            self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(1.0 if self.terminal else EVERY_S):
            self._show()

    def _show(self) -> None:
        line = self.line()
        if self.terminal:
            width = shutil.get_terminal_size().columns - 1
            _write(f"\r\x1b[K{line[:width]}")
            self._shown = True
        else:
            _write(f"{line}\n")

    def _say(self, text: str) -> None:
        self._clear()
        _write(f"{text}\n")

    def _clear(self) -> None:
        if self._shown:
            _write("\r\x1b[K")
            self._shown = False

    def line(self) -> str:
        """Tests count by how long they took the last time; a suite in rounds counts by what it has done."""
        now = list(_now(self.folder))
        whole = sum(map(self._weight, self.wanted)) or 1.0
        done = sum(self._weight(name) for name in self.wanted & self.tests.keys() - self.running.keys())
        shares = [each.done / each.goal for each in now]
        for name, began in self.running.items():
            weight = self._weight(name)
            done += weight * (shares.pop() if shares else min(0.95, (time() - began) / weight))
        share = min(1.0, done / whole)
        bar = ("#" * round(share * WIDTH)).ljust(WIDTH, "-")
        passed_s = time() - self.began
        tests = len(self.tests.keys() - self.running.keys())
        told = [f"[{bar}] {share:4.0%}", f"{tests}/{len(self.wanted)} tests", page.duration(passed_s)]
        told += [f"{each.title}: {each.done}/{each.goal} {each.kind}{_left(each)}" for each in now]
        if not now:
            told += [min(self.running, key=self.running.__getitem__).rpartition("/")[2]] if self.running else []
        return " · ".join(told)

    def _weight(self, name: str) -> float:
        return max(0.05, self._before.get(name, UNKNOWN_S))


def _left(now: Now) -> str:
    """How long it still takes, at the pace of this call."""
    done, passed_s = now.done - now.before, time() - now.began
    return (
        f", {page.duration((now.goal - now.done) * passed_s / done)} to go" if done > 0 and now.goal > now.done else ""
    )


def _write(text: str) -> None:
    with suppress(OSError):  # whoever watched has gone; the tests go on
        os.write(_ERR, text.encode())


def _now(folder: Path) -> Iterator[Now]:
    for path in sorted((folder / "now").glob("*.json")):
        try:
            now = Now(**json.loads(path.read_text()))
        except (FileNotFoundError, ValueError):
            continue
        if os.getpid() in (now.pid, _parent(now.pid)):  # not of another call
            yield now


def _parent(pid: int) -> int | None:
    """None if it is gone: it was killed, and could not say that it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def _plain(nodeid: str) -> str:
    """xdist adds the group to the name."""
    return _GROUP.sub("", nodeid)


def _durations(folder: Path) -> Mapping[str, float]:
    file = folder / "durations.json"
    try:
        return dict(json.loads(file.read_text()))
    except (FileNotFoundError, ValueError):
        return {}


def _remember(folder: Path, durations: Mapping[str, float]) -> None:
    if durations:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "durations.json").write_text(json.dumps(durations, indent=0))
