"""`python -m tests.simulate SEED`: play one world, tell what broke, and make it smaller. `--seeds A:B`: many worlds.
`--score NAMES`: known-bad variants of the code, until each is caught.

--minutes N  --without FAULT  --only FAULT,FAULT  --variant NAME  --kind dense  --no-shrink  --json
--at-once N  --resume FILE  --first  --most N
"""

import argparse
import json
import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path

from tests.simulate.campaign import Prepare, Wanted, apart, as_it_is
from tests.simulate.scenario import ASKING, KINDS
from tests.simulate.scoring import clean, scored
from tests.simulate.shrinking import shrunk
from tests.simulate.soaking import Tally, progress
from tests.simulate.variants import VARIANTS

FAULTS = (*KINDS, ASKING)


def main(words: Sequence[str] | None = None) -> int:
    asked = _arguments(words)
    prepare = VARIANTS[asked.variant].apply if asked.variant else as_it_is
    if asked.score is not None:
        return _score(asked)
    if asked.seeds is not None:
        return _many(prepare, asked)
    return _one(_wanted(asked.seed, asked), prepare, asked)


def _wanted(seed: int, asked: argparse.Namespace) -> Wanted:
    return Wanted(seed, asked.minutes, tuple(asked.without), asked.only, asked.variant, asked.kind)


def _one(wanted: Wanted, prepare: Prepare, asked: argparse.Namespace) -> int:
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


def _many(prepare: Prepare, asked: argparse.Namespace) -> int:
    tally = Tally(asked.seeds, asked.resume)
    with progress(tally) as show:
        for result in apart([_wanted(seed, asked) for seed in tally.left()], prepare, asked.at_once):
            tally.add(result)
            if asked.json:
                print(json.dumps(asdict(result)), flush=True)
            elif not result.is_good:
                print(result.story, flush=True)
            show(tally)
            if tally.failed and asked.first:
                break
    print(tally, file=sys.stderr)
    return 1 if tally.failed else 0


def _score(asked: argparse.Namespace) -> int:
    """Whoever survives has a reason in variants.py; whoever is caught is caught by what is wrong with it."""
    names, missed = asked.score, []
    for score in scored(names, asked.most, asked.at_once):
        print(json.dumps(asdict(score)) if asked.json else score, flush=True)
        if not score.laws and VARIANTS[score.name].hidden is None:
            missed.append(score.name)
        if score.laws and asked.compared and (found := clean(score)).laws:
            print(found.story, flush=True)
            missed.append(f"{score.name}, where the code as it is breaks a law too")
    print(f"missed {len(missed)} of {len(names)}{': ' if missed else ''}{', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


def _seeds(text: str) -> range:
    first, _, last = text.partition(":")
    if not (first.isdigit() and last.isdigit() and int(first) < int(last)):
        raise argparse.ArgumentTypeError(f"'{text}' is not A:B, the seeds from A to before B, such as 0:100")
    return range(int(first), int(last))


def _names(text: str, known: Collection[str], what: str) -> tuple[str, ...]:
    """Who asks for what does not exist would be told about worlds without it."""
    found = tuple(filter(None, text.split(",")))
    for name in found:
        if name not in known:
            raise argparse.ArgumentTypeError(f"there is no {what} {name}; there are {', '.join(sorted(known))}")
    return found


def _faults(text: str) -> tuple[str, ...]:
    return _names(text, FAULTS, "fault")


def _variants(text: str) -> tuple[str, ...]:
    return tuple(VARIANTS) if text == "all" else _names(text, VARIANTS, "variant")


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulate", description=__doc__)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--without", action="append", default=[], choices=FAULTS)
    parser.add_argument("--only", type=_faults)
    parser.add_argument("--variant", choices=sorted(VARIANTS))
    parser.add_argument("--kind", choices=("plain", "dense", "crowded"), default="plain")
    parser.add_argument("--seeds", type=_seeds, help="A:B, many worlds")
    parser.add_argument("--score", type=_variants, help="names of variants, or all")
    parser.add_argument("--most", type=int, default=100, help="worlds for one variant")
    parser.add_argument("--compared", action="store_true", help="play the world that caught it with the code as it is")
    parser.add_argument("--at-once", type=int, default=1, help="processes")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--first", action="store_true", help="stop at the first that fails")
    parser.add_argument("--resume", type=Path, help="where it is kept which seeds are done")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
