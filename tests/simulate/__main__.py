"""`python -m tests.simulate SEED`: play one world, tell what broke, and make it smaller. `--seeds A:B`: many worlds.

--minutes N  --without FAULT  --only FAULT,FAULT  --variant NAME  --dense  --no-shrink  --json  --resume FILE
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tests.simulate.campaign import Wanted, apart, batches, bound
from tests.simulate.shrinking import shrunk
from tests.simulate.variants import VARIANTS


def main() -> int:
    asked = _arguments()
    prepare = VARIANTS[asked.variant].apply if asked.variant else _nothing
    only = None if asked.only is None else tuple(filter(None, asked.only.split(",")))

    def world(seed: int) -> Wanted:
        return Wanted(seed, asked.minutes, tuple(asked.without), only, asked.variant, asked.dense)

    return _one(world(asked.seed), prepare, asked) if asked.seeds is None else _many(world, prepare, asked)


def _nothing() -> None:
    """The code as it is."""


def _one(wanted: Wanted, prepare: Callable[[], None], asked: argparse.Namespace) -> int:
    [result] = list(apart([wanted], prepare))
    if asked.json:
        print(json.dumps(asdict(result)))
    elif result.is_good:
        cost = f"{result.attempts} attempts, {result.cpu_s:.1f} s, trace {result.trace}"
        print(f"seed {result.seed}: no law was broken ({cost})")
    else:
        if not asked.no_shrink:
            result = shrunk(wanted, result, prepare, lambda line: print(line, file=sys.stderr, flush=True))
        print(result.story)
    return 0 if result.is_good else 1


def _many(world: Callable[[int], Wanted], prepare: Callable[[], None], asked: argparse.Namespace) -> int:
    first, _, last = asked.seeds.partition(":")
    seeds = range(int(first), int(last))
    done = _done(asked.resume)
    failed = [seed for seed, is_good in done.items() if not is_good and seed in seeds]
    count, cpu_s = sum(seed in seeds for seed in done), 0.0
    before = count
    for result in batches([world(seed) for seed in seeds if seed not in done], prepare):
        count += 1
        cpu_s += result.cpu_s
        if not result.is_good:
            failed.append(result.seed)
        if asked.resume is not None:
            with asked.resume.open("a") as file:
                print(json.dumps({"seed": result.seed, "laws": result.laws}), file=file)
        if asked.json:
            print(json.dumps(asdict(result)), flush=True)
        elif not result.is_good:
            print(result.story, flush=True)
        if count % 50 == 0 or count == len(seeds):
            each_s = cpu_s / max(1, count - before)
            print(
                f"{count}/{len(seeds)}: {bound(len(failed), count)}; {each_s:.2f} s each", file=sys.stderr, flush=True
            )
        if failed and asked.first:
            break
    return 1 if failed else 0


def _done(path: Path | None) -> dict[int, bool]:
    if path is None or not path.exists():
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["seed"]: not row["laws"] for row in rows}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulate", description=__doc__)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--only")
    parser.add_argument("--variant", choices=sorted(VARIANTS))
    parser.add_argument("--dense", action="store_true", help="more to do all the time")
    parser.add_argument("--seeds", help="A:B, many worlds")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--first", action="store_true", help="stop at the first that fails")
    parser.add_argument("--resume", type=Path, help="where it is kept which seeds are done")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
