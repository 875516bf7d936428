"""`python -m bench [NAME ...] [--json] [--quick]`."""

import argparse
import json
import os
import platform
from collections.abc import Callable
from dataclasses import asdict

from bench import api, burst, catchup, delay, fairness, fuzz, idle, listing, startup, ticks, work
from bench.measure import Result, progress

BENCHMARKS: dict[str, Callable[[bool], Result]] = {
    "ticks": ticks.run,
    "fuzz": fuzz.run,
    "startup": startup.run,
    "burst": burst.run,
    "idle": idle.run,
    "delay": delay.run,
    "work": work.run,
    "fairness": fairness.run,
    "catchup": catchup.run,
    "api": api.run,
    "list": listing.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Speed next to peers, in one run.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all unless given")
    parser.add_argument("--json", action="store_true", help="results as JSON")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: to see that it works, not to quote")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"there is no benchmark {unknown[0]}: there are {', '.join(BENCHMARKS)}")
    results = {}
    for name in options.names or BENCHMARKS:
        results[name] = BENCHMARKS[name](options.quick)
        progress("")
        if not options.json:
            print(f"== {name} ==", *results[name].lines, *_verdicts(results[name]), "", sep="\n", flush=True)
    if options.json:
        shown = {
            name: {**result.figures, "goals": [asdict(goal) for goal in result.goals]}
            for name, result in results.items()
        }
        print(json.dumps({"machine": _machine(), "quick": options.quick, "results": shown}, indent=2))


def _verdicts(result: Result) -> list[str]:
    return [f"{'goal met' if goal.met else 'goal missed'}: {goal.text}: {goal.value}" for goal in result.goals]


def _machine() -> dict[str, object]:
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


if __name__ == "__main__":
    main()
