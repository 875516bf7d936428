"""Many worlds: each is judged, batches are forked (what was killed in a world is leaked on purpose), and a world that
does not come to an end is told as one that failed."""

import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.simulate.laws import judged
from tests.simulate.scenario import Scenario, drawn
from tests.simulate.story import told
from tests.simulate.world import World, trace

LONGEST_S = 120  # of the processor, for one world
BATCH = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which world: a seed, and what is different from what it would draw."""

    seed: int
    minutes: float = 20.0
    without: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    variant: str | None = None
    is_dense: bool = False

    def scenario(self) -> Scenario:
        return drawn(self.seed, self.minutes, self.without, self.only, is_dense=self.is_dense)

    def command(self) -> str:
        words = ["python -m tests.simulate", str(self.seed)]
        words += [f"--minutes {self.minutes:g}"] if self.minutes != 20.0 else []
        words += [f"--without {kind}" for kind in self.without]
        words += [f"--only {','.join(self.only)}"] if self.only is not None else []
        words += [f"--variant {self.variant}"] if self.variant else []
        words += ["--dense"] if self.is_dense else []
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Result:
    seed: int
    trace: str
    cpu_s: float
    requests: int
    attempts: int
    laws: list[str] = field(default_factory=list)  # that were broken
    story: str = ""

    @property
    def is_good(self) -> bool:
        return not self.laws


def play(wanted: Wanted) -> Result:
    """One world in this process."""
    scenario, begun_s = wanted.scenario(), time.process_time()
    world = World(scenario)
    record = world.run()
    violations = judged(scenario, record)
    story = told(scenario, record, violations, wanted.command()) if violations else ""
    return Result(
        wanted.seed,
        trace(record),
        time.process_time() - begun_s,
        world.database.transactions,
        len(record.begun),
        list(dict.fromkeys(each.law for each in violations)),
        story,
    )


def apart(wanted: Sequence[Wanted], prepare: Callable[[], None] = lambda: None) -> Iterator[Result]:
    """In a process of its own, which is not cleaned up."""
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(there)
        _in_the_child(wanted, prepare, here)
    os.close(here)
    answered = 0
    with os.fdopen(there) as lines:
        for line in lines:
            answered += 1
            yield Result(**json.loads(line))
    os.waitpid(child, 0)
    if answered < len(wanted):
        lost = wanted[answered]
        yield Result(
            lost.seed,
            "",
            LONGEST_S,
            0,
            0,
            ["no end"],
            f"seed {lost.seed}: no end, or the process died\nagain: {lost.command()}",
        )
        if answered + 1 < len(wanted):
            yield from apart(wanted[answered + 1 :], prepare)


def _in_the_child(wanted: Sequence[Wanted], prepare: Callable[[], None], out: int) -> None:
    code = 1
    try:
        prepare()
        gc.disable()
        for each in wanted:
            signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
            line: dict[str, Any] = asdict(play(each))
            os.write(out, json.dumps(line).encode() + b"\n")
        code = 0
    except BaseException as error:  # told, and the parent counts who is missing
        import traceback

        traceback.print_exception(error, file=sys.stderr)
        sys.stderr.flush()
    finally:
        os._exit(code)


def batches(wanted: Sequence[Wanted], prepare: Callable[[], None] = lambda: None) -> Iterator[Result]:
    for start in range(0, len(wanted), BATCH):
        yield from apart(wanted[start : start + BATCH], prepare)


def bound(failures: int, worlds: int) -> str:
    """What so many worlds say about one more, at 95 %."""
    if worlds == 0:
        return "nothing is known"
    if failures == 0:
        return f"0 of {worlds} worlds failed: less than {3 / worlds:.2%} do, at 95 %"
    return f"{failures} of {worlds} worlds failed"
