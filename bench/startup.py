"""How long a command takes, next to a Python that does nothing: `fleetcron next` is typed by people."""

import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.measure import Goal, Result, progress, table

GOAL_MS = 200.0
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "python -c 'import fleetcron'": [sys.executable, "-c", "import fleetcron"],
    "fleetcron next": [
        str(Path(sys.executable).with_name("fleetcron")), "next", "0 2 * * *", "--timezone", "America/New_York",
    ],
}  # fmt: skip


def run(quick: bool) -> Result:
    rounds = 5 if quick else 15
    spent: dict[str, list[float]] = {name: [] for name in COMMANDS}
    progress(f"startup: {rounds} rounds")
    for number in range(rounds + 1):
        for name, command in COMMANDS.items():
            begin = perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            if number:  # the first round reads the files from the disk
                spent[name].append((perf_counter() - begin) * 1e3)
    ms = {name: {"median": median(times), "best": min(times)} for name, times in spent.items()}
    ours = ms["fleetcron next"]["median"]
    return Result(
        figures={"rounds": rounds, "ms": ms},
        lines=table(
            ["ms", "median", "best"],
            [[name, f"{row['median']:.0f}", f"{row['best']:.0f}"] for name, row in ms.items()],
        ),
        goals=[Goal(f"fleetcron next < {GOAL_MS:g} ms", f"{ours:.0f} ms", ours < GOAL_MS)],
    )
