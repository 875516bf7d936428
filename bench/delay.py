"""From a scheduled instant to the first line of the handler, on an idle system; next to APScheduler 3 on PostgreSQL.

Four jobs a second, a quarter of a second apart. Ours is a whole node as `fleetcron serve` starts it: durable runs, the
handler in a process of its own. A start before its instant would be a broken promise, so the smallest delay is shown.
The floor is a process that only sleeps until each instant: a machine that is late by itself shows there. Beside
p99 stands `calm p99`, without the starts during which the machine itself stood still (`stalls.py`).
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import sleep

from bench.measure import Goal, Result, progress, table
from bench.server import database
from bench.stalls import Stalls, watched

GOAL_P50_MS, GOAL_P99_MS = 1.0, 3.0
JOBS = 4
_COLUMNS = ("p50", "p99", "max", "min", "calm p99")
Start = tuple[float, float]  # how late, in ms; and when, in seconds since 1970
_ROOT = Path(__file__).parent.parent
_DOCUMENT = "jobs:\n" + "".join(
    f"  - name: quarter-{number}\n"
    f"    schedule: {{every: 1s, anchor: 2026-01-01T00:00:00.{number * 250:03}Z}}\n"
    "    run: {python: 'bench.delay_handler:note'}\n"
    "    misfire: skip\n"
    for number in range(JOBS)
)


def run(quick: bool) -> Result:
    samples = 40 if quick else 240
    found: dict[str, list[Start]] = {}
    with watched() as stalls, tempfile.TemporaryDirectory() as folder, database("fleetcron_bench_delay") as url:
        place = Path(folder)
        (place / "jobs.yaml").write_text(_DOCUMENT)
        found["fleetcron, SQLite"] = _ours(place, f"sqlite:///{place}/fleetcron.db", samples)
        found["fleetcron, PostgreSQL"] = _ours(place, url, samples)
        found["APScheduler 3, PostgreSQL"] = _peer(place, url, samples)
        found["a bare sleep"] = _bare(samples)
    figures = {name: _figures(starts, stalls) for name, starts in found.items()}
    goals = []
    for name in ("fleetcron, SQLite", "fleetcron, PostgreSQL"):
        own, calm = figures[name], figures[name]["calm p99"]
        goals += [
            Goal(f"{name}: p50 <= {GOAL_P50_MS:g} ms", f"{own['p50']:.2f} ms", own["p50"] <= GOAL_P50_MS),
            Goal(
                f"{name}: p99 <= {GOAL_P99_MS:g} ms",
                f"{own['p99']:.2f} ms, {calm:.2f} ms while the machine did not stand still",
                own["p99"] <= GOAL_P99_MS,
            ),
            Goal(f"{name}: never early", f"{own['min']:.2f} ms", own["min"] >= 0),
        ]
    return Result(
        figures={"samples": samples, "ms": figures},
        lines=[
            *table(
                ["start delay, ms", *_COLUMNS, "in a stall"],
                [
                    [name, *(f"{row[key]:.2f}" for key in _COLUMNS), f"{row['stalled']:.0f} of {samples}"]
                    for name, row in figures.items()
                ],
            ),
            f"a stall: the machine was late for a process with {_kind(stalls)} priority by more than 1 ms",
        ],
        goals=goals,
    )


def _ours(place: Path, url: str, samples: int) -> list[Start]:
    kind = url.partition(":")[0]
    progress(f"delay: fleetcron on {kind}")
    command = [str(Path(sys.executable).with_name("fleetcron")), "serve", "-f", "jobs.yaml", "--database", url]
    settings = {"FLEETCRON_EXECUTOR__HANDLERS": "bench.delay_handler", "FLEETCRON_NODE__LOG_LEVEL": "error"}
    return _collected(command, place, f"ours-{kind}", samples, settings)


def _peer(place: Path, url: str, samples: int) -> list[Start]:
    progress("delay: APScheduler 3")
    return _collected([sys.executable, "-m", "bench.delay_apscheduler", url], place, "apscheduler", samples, {})


def _bare(samples: int) -> list[Start]:
    """What the machine itself does to somebody who only sleeps until each instant: nobody can be better than that."""
    progress("delay: a bare sleep")
    code = (
        "import time\nat = time.time() + 1\n"
        f"for _ in range({samples}):\n"
        f"    at += {1 / JOBS}\n    time.sleep(max(0, at - time.time()))\n    now = time.time()\n"
        "    print((now - at) * 1000, now)"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return [_start(line) for line in told.splitlines()]


def _collected(command: list[str], place: Path, name: str, samples: int, settings: dict[str, str]) -> list[Start]:
    """What the handlers wrote themselves, without the first three seconds."""
    log = place / name
    log.touch()
    environment = {**os.environ, **settings, "BENCH_DELAYS": str(log), "PYTHONPATH": str(_ROOT)}
    warm = 3 * JOBS
    process = subprocess.Popen(command, cwd=place, env=environment, stdout=subprocess.DEVNULL)
    try:
        while len(lines := log.read_text().splitlines()) < samples + warm:
            assert process.poll() is None, f"{name} ended with {process.returncode}"
            sleep(0.5)
    finally:
        process.terminate()
        process.wait(30)
    return [_start(line) for line in lines[warm : samples + warm]]


def _start(line: str) -> Start:
    delay_ms, at_s = line.split()
    return float(delay_ms), float(at_s)


def _figures(starts: list[Start], stalls: Stalls) -> dict[str, float]:
    calm = [delay for delay, at in starts if not stalls.hit(at - delay / 1000, at)]
    ordered = sorted(delay for delay, _ in starts)
    return {
        "p50": _share(ordered, 0.5),
        "p99": _share(ordered, 0.99),
        "max": ordered[-1],
        "min": ordered[0],
        "calm p99": _share(sorted(calm), 0.99),
        "stalled": len(starts) - len(calm),
    }


def _share(ordered: list[float], share: float) -> float:
    return ordered[round(share * (len(ordered) - 1))]


def _kind(stalls: Stalls) -> str:
    return "real-time" if stalls.is_real_time else "ordinary"
