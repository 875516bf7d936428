"""Tens of thousands of missed ticks are caught up while other jobs tick: does the live work wait for the old?

A whole node as `fleetcron serve` starts it, handlers in a process of their own. First only the live jobs tick: that is
normal. Then the cursors of the other jobs are put back, as after an outage, and the node is started again: every missed
tick becomes a run (`misfire: all`), and the live jobs go on ticking. Their delays are written by the handler itself.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.handlers import WHILE
from bench.measure import Goal, Result, progress, quantile, table
from bench.server import database
from bench.tables import Tables, opened

GOAL = 2.0
LIVE, LIVE_EVERY_MS = 20, 1_000
SLOTS = 20
HANDLER_S = 0.01
HOUR_MS = 3_600_000
_WARM_S = 3.0
_LOOK_S = 2.0  # a look counts all runs, which takes a core for some 10 ms
_ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Size:
    jobs: int
    each: int  # ticks that every job has missed
    normal_s: float

    @property
    def missed(self) -> int:
        return self.jobs * self.each


QUICK = Size(jobs=100, each=60, normal_s=8)
FULL = Size(jobs=500, each=100, normal_s=40)


def run(quick: bool) -> Result:
    size = QUICK if quick else FULL
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder, database("fleetcron_bench_catchup") as url:
        place = Path(folder)
        (place / "jobs.yaml").write_text(_document(size))
        for name, where in (("PostgreSQL", url), ("SQLite", f"sqlite:///{place}/fleetcron.db")):
            found[name] = asyncio.run(_on(name, where, place, size))
    rows, goals = [], []
    for name, seen in found.items():
        normal, busy = seen["normal"], seen["catch-up"]
        ratio = busy["p95"] / normal["p95"]
        text = f"{name}: live p95 while {size.missed:,} are caught up <= {GOAL:g} x normal"
        goals.append(Goal(text, f"{ratio:.1f} x ({busy['p95']:.2f} ms)", ratio <= GOAL))
        rows += [
            [f"{name}, {way}", *(f"{seen[way][key]:.2f}" for key in ("p50", "p95", "max")), f"{seen[way]['samples']}"]
            for way in ("normal", "catch-up")
        ]
        rows.append([f"{name}, caught up in a second", f"{size.missed / seen['spent_s']:,.0f}", "", "", ""])
    return Result(
        figures={"missed": size.missed, "slots": SLOTS, "handler_s": HANDLER_S, "seen": found},
        lines=table(["start delay of live jobs, ms", "p50", "p95", "max", "samples"], rows),
        goals=goals,
    )


def _document(size: Size) -> str:
    live = "".join(
        f"  - name: live-{number}\n"
        f"    schedule: {{every: 1s, anchor: 2026-01-01T00:00:00.{number * LIVE_EVERY_MS // LIVE:03}Z}}\n"
        "    run: {python: 'bench.delay_handler:note'}\n"
        "    misfire: skip\n"
        for number in range(LIVE)
    )
    missed = "".join(
        f"  - name: missed-{number}\n"
        f'    schedule: {{cron: "{number % 60} * * * *"}}\n'
        f"    run: {{python: '{WHILE}'}}\n"
        f"    payload: {{s: {HANDLER_S}}}\n"
        "    overlap: allow\n"
        f"    misfire: {{policy: all, window: {size.each + 1}h, limit: {size.each}}}\n"
        for number in range(size.jobs)
    )
    return f"jobs:\n{live}{missed}"


async def _on(name: str, url: str, place: Path, size: Size) -> dict[str, Any]:
    async with opened(url) as tables:
        progress(f"catchup: {name}, normal")
        async with _serving(place, url, "normal") as log:
            await asyncio.sleep(_WARM_S)
            seen = await _delays(log, size.normal_s)
        await _put_back(tables, size)
        progress(f"catchup: {name}, {size.missed:,} missed ticks")
        begin_ms = await tables.now_ms()
        async with _serving(place, url, "busy") as log:
            await asyncio.sleep(_WARM_S / 3)  # the catching up has begun too
            from_line = len(log.read_text().splitlines())
            while (done := await _caught_up(tables)) < size.missed:
                progress(f"catchup: {name}, {done:,} of {size.missed:,}")
                await asyncio.sleep(_LOOK_S)
            busy = _figures(log.read_text().splitlines()[from_line:])
        [(end_ms,)] = await tables.fetch("SELECT max(finished_ms) FROM runs WHERE lane = 'catchup'")
        return {"normal": seen, "catch-up": busy, "spent_s": (end_ms - begin_ms) / 1000}


async def _delays(log: Path, seconds: float) -> dict[str, float]:
    from_line = len(log.read_text().splitlines())
    await asyncio.sleep(seconds)
    return _figures(log.read_text().splitlines()[from_line:])


async def _put_back(tables: Tables, size: Size) -> None:
    """As if nobody had planned for so many hours."""
    now_ms = await tables.now_ms()
    back_ms = now_ms - now_ms % HOUR_MS - size.each * HOUR_MS - 1  # before the hour: so many ticks and up to one more
    await tables.run(
        f"UPDATE cursors SET cursor_ms = {back_ms}, next_due_ms = {back_ms + 1} WHERE job_id IN"
        " (SELECT job_id FROM jobs WHERE name LIKE 'missed-%')"
    )


async def _caught_up(tables: Tables) -> int:
    [(done,)] = await tables.fetch("SELECT count(*) FROM runs WHERE lane = 'catchup' AND finished_ms IS NOT NULL")
    return int(done)


@asynccontextmanager
async def _serving(place: Path, url: str, name: str) -> AsyncIterator[Path]:
    log = place / f"{url.partition(':')[0]}-{name}"
    log.touch()
    command = [str(Path(sys.executable).with_name("fleetcron")), "serve", "-f", "jobs.yaml", "--database", url]
    environment = {
        **os.environ,
        "FLEETCRON_EXECUTOR__HANDLERS": "bench.delay_handler, bench.handlers",
        "FLEETCRON_WORKER__POOLS": f"default={SLOTS}",
        "FLEETCRON_NODE__LOG_LEVEL": "error",
        "BENCH_DELAYS": str(log),
        "PYTHONPATH": str(_ROOT),
    }
    process = subprocess.Popen(command, cwd=place, env=environment, stdout=subprocess.DEVNULL)
    try:
        while not log.read_text():
            assert process.poll() is None, f"the node ended with {process.returncode}"
            await asyncio.sleep(0.1)
        yield log
        assert process.poll() is None, f"the node ended with {process.returncode}"
    finally:
        process.terminate()
        process.wait(60)


def _figures(lines: list[str]) -> dict[str, float]:
    ordered = sorted(float(line.split()[0]) for line in lines)  # and when that was
    assert ordered, "no live job has run"
    return {
        "p50": quantile(ordered, 0.5), "p95": quantile(ordered, 0.95), "max": ordered[-1], "samples": len(ordered),
    }  # fmt: skip
