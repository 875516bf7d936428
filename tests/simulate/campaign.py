"""Many worlds: each is judged, batches are forked (what was killed in a world is leaked on purpose), and a world that
does not come to an end is told as one that failed."""

import gc
import json
import os
import selectors
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TypeAlias

from tests.simulate.laws import judged
from tests.simulate.scenario import Scenario, crowded, drawn
from tests.simulate.story import told
from tests.simulate.world import World, trace

LONGEST_S = 120  # of the processor, for one world
BATCH = 2  # worlds in one process: forking is cheap, and the last processes of a round leave a core idle

Prepare: TypeAlias = Callable[[], None]


def as_it_is() -> None:
    """The code is not changed."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which world: a seed, and what is different from what it would draw."""

    seed: int
    minutes: float = 20.0
    without: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    variant: str | None = None
    kind: str = "plain"  # dense: more to do all the time; crowded: more than can be done

    def scenario(self) -> Scenario:
        if self.kind == "crowded":
            return crowded(self.seed, self.minutes)
        return drawn(self.seed, self.minutes, self.without, self.only, is_dense=self.kind == "dense")

    def words(self, *, variant: bool = True) -> list[str]:
        """For `python -m tests.simulate`."""
        words = [str(self.seed)]
        words += [f"--minutes={self.minutes:g}"] if self.minutes != 20.0 else []
        words += [f"--without={kind}" for kind in self.without]
        words += [f"--only={','.join(self.only)}"] if self.only is not None else []
        words += [f"--variant={self.variant}"] if self.variant and variant else []
        return words + ([f"--kind={self.kind}"] if self.kind != "plain" else [])

    def command(self) -> str:
        return " ".join(["python -m tests.simulate", *self.words()])


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


def apart(
    wanted: Sequence[Wanted], prepare: Prepare = as_it_is, at_once: int = 1, batch: int = BATCH
) -> Iterator[Result]:
    """In processes of their own, which are not cleaned up: batches, so many of them at the same time."""
    waiting = deque(wanted[start : start + batch] for start in range(0, len(wanted), batch))
    running: set[_Batch] = set()
    try:
        with selectors.DefaultSelector() as pipes:
            while waiting or running:
                while waiting and len(running) < at_once:
                    one = _begun(waiting.popleft(), prepare)
                    running.add(one)
                    pipes.register(one.pipe, selectors.EVENT_READ, one)
                for key, _ in pipes.select():
                    one = key.data
                    yield from one.results()
                    if one.is_over:
                        pipes.unregister(one.pipe)
                        running.remove(one)
                        left = one.buried()
                        if left:  # it died in the first of these
                            yield _no_end(left[0])
                            waiting.extendleft([left[1:]] if left[1:] else [])
    finally:
        for one in running:
            os.kill(one.process, signal.SIGKILL)
            one.buried()


@dataclass(eq=False, slots=True)
class _Batch:
    wanted: Sequence[Wanted]
    process: int
    pipe: int
    answered: int = 0
    is_over: bool = False
    _text: bytes = b""

    def results(self) -> Iterator[Result]:
        block = os.read(self.pipe, 1 << 16)
        self.is_over = not block
        *lines, self._text = (self._text + block).split(b"\n")
        for line in lines:
            self.answered += 1
            yield Result(**json.loads(line))

    def buried(self) -> Sequence[Wanted]:
        """What it has not answered."""
        os.close(self.pipe)
        os.waitpid(self.process, 0)
        return self.wanted[self.answered :]


def _begun(wanted: Sequence[Wanted], prepare: Prepare) -> _Batch:
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(there)
        _in_the_child(wanted, prepare, here)
    os.close(here)
    return _Batch(wanted, child, there)


def _no_end(wanted: Wanted) -> Result:
    story = f"seed {wanted.seed}: no end, or the process died\nagain: {wanted.command()}"
    return Result(wanted.seed, "", LONGEST_S, 0, 0, ["no end"], story)


def _in_the_child(wanted: Sequence[Wanted], prepare: Prepare, out: int) -> None:
    code = 1
    try:
        prepare()
        gc.disable()
        known = set(sys.modules)
        for each in wanted:
            signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
            line = json.dumps(asdict(play(each))).encode() + b"\n"
            # soak/code.py says that a world is made of what this module loads
            assert not (late := _of_ours(set(sys.modules) - known)), f"a world has loaded {late}"
            while line:
                line = line[os.write(out, line) :]
        code = 0
    except BaseException as error:  # told, and the parent counts who is missing
        traceback.print_exception(error, file=sys.stderr)
        sys.stderr.flush()
    finally:
        os._exit(code)


def _of_ours(modules: set[str]) -> list[str]:
    return sorted(name for name in modules if name.partition(".")[0] in ("fleetcron", "tests"))


def bound(failures: int, worlds: int) -> str:
    """What so many worlds say about one more, at 95 %."""
    if worlds == 0:
        return "nothing is known"
    if failures == 0:
        return f"0 of {worlds} worlds failed: less than {1 - 0.05 ** (1 / worlds):.2%} do, at 95 %"
    return f"{failures} of {worlds} worlds failed"
