"""A world of your own: a fleet on virtual time that a test moves on by hand."""

from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

from fleetcron.errors import RefusedError, ScheduleError
from fleetcron.executors.context import Context
from fleetcron.executors.handlers import Handlers
from fleetcron.model.answer import WORDS
from fleetcron.model.definition import Definition
from fleetcron.model.rules import CronEntry, OnceEntry
from fleetcron.model.run import RunLine
from fleetcron.model.target import PythonTarget
from fleetcron.policy.why import why
from fleetcron.scheduler.desk import Applied
from fleetcron.simulate.rehearsed import Cast
from fleetcron.simulate.stage import Stage
from fleetcron.store.history import LedgerLine, Span
from fleetcron.store.written import Ok, Refused
from fleetcron.testing.instants import When, instant_ms, shown
from fleetcron.testing.results import Answered, Ran, answered, ran
from fleetcron.testing.scripts import scripted, seconds_of
from fleetcron.testing.sources import Jobs, Source, read
from fleetcron.times import zones
from fleetcron.times.instants import LAST_MS
from fleetcron.times.preview import local_time
from fleetcron.times.zone import Zone
from fleetcron.views.why import of_tick

T = TypeVar("T")
Misfire: TypeAlias = Literal["skip", "latest", "all"]
POLICIES: Final = get_args(Misfire)

# a Monday; the same for everybody, so that a test does not depend on the day it runs
START: Final = "2027-01-04 00:00"
_PAGE: Final = 1000
_LONGEST_MS: Final = 3660 * 86_400_000  # as `fleetcron simulate`


def world(
    jobs: Jobs,
    *,
    tz: str = "UTC",
    start: When = START,
    slots: Mapping[str, int] | int = 10,
    workers: int = 1,
    seed: int = 0,
) -> "World":
    """A world with these jobs, in which it is `start`. Use it in a `with`.

    `jobs` is a Fleetcron app, definitions, YAML, or the path of a YAML file. `tz` is the zone in which times without an
    offset are meant. `slots` is how many runs each worker has at a time, for all pools or by pool. `seed` decides what
    chance decides (the jitter of retries).
    """
    return World(jobs, tz=tz, start=start, slots=slots, workers=workers, seed=seed)


class World:
    """Made by `world(...)`."""

    def __init__(
        self, jobs: Jobs, *, tz: str, start: When, slots: Mapping[str, int] | int, workers: int, seed: int
    ) -> None:
        source = read(jobs)
        self._zone = zones.zone(tz)
        self._definitions: dict[str, Definition] = {}
        self._functions: dict[str, Any] = {}
        self._triggers = 0
        ordinary_ms = instant_ms(START, self._zone, 0)
        start_ms = instant_ms(start, self._zone, ordinary_ms, same=True)
        by_pool = dict(slots) if isinstance(slots, Mapping) else {}
        if by_pool:
            _refuse_unknown(by_pool, {each.pool for each in source.definitions})
        for each in source.definitions:
            by_pool.setdefault(each.pool, 10 if isinstance(slots, Mapping) else slots)
        for number in (workers, *by_pool.values()):
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise RefusedError(f"a world needs at least one worker, and one slot in each pool: not {number!r}")
        self._stage = Stage(Cast(), start_ms, slots=by_pool, workers=workers, seed=seed)
        try:
            self._stage.up()
            self._take(source)  # the start comes with the first run, when everybody is cast
        except BaseException:
            self._stage.close()
            raise

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stage.close()

    @property
    def now(self) -> datetime:
        """What time it is, in the zone of the world."""
        return local_time(self._zone, self._stage.now_ms)

    # -- what happens

    def outage(self, start: When, end: When) -> None:
        """Nobody runs in [start, end): every node is killed, and new ones start at its end."""
        begins_ms = instant_ms(start, self._zone, self._stage.now_ms, same=True)
        self._not_over(begins_ms, "the outage would begin at")
        ends_ms = instant_ms(end, self._zone, begins_ms)
        if ends_ms <= begins_ms:
            raise ScheduleError(f"the outage ends before it begins: {start} to {end}")
        self._stage.plan_outage(begins_ms, ends_ms)

    def handler(
        self,
        job: str,
        *,
        seconds: str | float | timedelta = 0,
        fails: int | bool = False,
        raises: BaseException | type[BaseException] | None = None,
        returns: Any = None,
        call: bool = False,
    ) -> None:
        """What the job does from now on, instead of its function: it takes so long, the first `fails` attempts of each
        run fail (True: all), with `raises`, and it returns something. `call`: at its end its own function is called."""
        name = self._name(job)
        calls = None
        if call:
            self._cast(name)
            calls = _called(self._functions[name])
        self._stage.cast.give(name, scripted(seconds, fails, raises, returns, calls))

    def pause(self, job: str, on_resume: Misfire | None = None) -> None:
        self._do(self._stage.desk.pause(*self._split(job), _policy("on_resume", on_resume)))

    def resume(self, job: str, missed: Misfire | None = None) -> None:
        self._do(self._stage.desk.resume(*self._split(job), _policy("missed", missed)))

    def trigger(self, job: str, payload: Mapping[str, Any] | None = None) -> Ran:
        """A run now, whatever the schedule says. What becomes of it is known when time has passed."""
        self._run(self._stage.now_ms)
        self._triggers += 1
        steering = self._stage.store.steering
        done = self._stage.do(
            steering.trigger(self._split(job), payload, actor="test", key=f"trigger-{self._triggers}")
        )
        if not isinstance(done, Ok):
            raise RefusedError(done.reason if isinstance(done, Refused) else "the run could not be made")
        shown_run = self._stage.do(self._stage.store.history.run(done.value.run_id))
        assert shown_run is not None
        return self._ran(shown_run.line)

    def apply(self, jobs: Jobs) -> None:
        """Create and change jobs, as a deploy does."""
        self._take(read(jobs))

    # -- time

    def run_until(self, when: When) -> None:
        """Let time pass. What is due at that very instant, and takes no time, is done."""
        to_ms = instant_ms(when, self._zone, self._stage.now_ms)
        self._not_over(to_ms, "it cannot become")
        self._run(to_ms)

    def run_for(self, duration: str | float | timedelta) -> None:
        self._run(self._stage.now_ms + round(seconds_of(duration) * 1000))

    # -- what became of it

    def runs(self, job: str | None = None, *, planned: bool = False) -> list[Ran]:
        """Runs up to now, the earliest tick first; `planned`: also those that are planned for later."""
        span = self._span(job)
        history = self._stage.store.history
        found: list[RunLine] = []
        before: int | None = None
        while True:
            page = self._stage.do(history.runs(Span(*span, before_id=before), limit=_PAGE, later=planned))
            found += page
            if len(page) < _PAGE:
                break
            before = page[-1].run.run_id
        found.sort(key=lambda line: (line.run.scheduled_for_ms, line.run.run_id))
        return [self._ran(line) for line in found]

    def ledger(self, job: str | None = None) -> list[Answered]:
        """Ticks that have no run, and why, the earliest first. One line may stand for many ticks."""
        span = self._span(job)
        found: list[LedgerLine] = []
        before: int | None = None
        while True:
            page = self._stage.do(self._stage.store.history.ledger(Span(*span, before_id=before), limit=_PAGE))
            found += page
            if len(page) < _PAGE:
                break
            before = page[-1].entry_id
        found.sort(key=lambda line: (line.answer.from_ms, line.entry_id))
        return [answered(line, self._zone_of(f"{line.tenant}/{line.name}"), _short(line)) for line in found]

    def why(self, what: str | Ran, at: When | None = None) -> str:
        """Why a run stands where it stands, or what became of the tick of a job: `w.why("report", "02:00")`."""
        situations = self._stage.store.situations
        if isinstance(what, Ran):
            known = self._stage.do(situations.of_run(what.run_id))
            assert known is not None
            return why(known)
        if at is None:
            runs = self.runs(what)
            return self.why(runs[-1]) if runs else "there is no run yet"
        zone = self._zone_of(self._name(what))
        tick_ms = self._tick_ms(what, at, zone)
        answer = self._stage.do(situations.of_tick(*self._split(what), tick_ms))
        if answer.situation is not None:
            return why(answer.situation)
        if answer.ledger is not None:
            return f"{answer.ledger.answer.answer}: {WORDS[answer.ledger.answer.reason]}"
        if answer.gap is not None:
            return f"not decided yet: it lies in a gap ({answer.gap[2]})"
        said = self._stage.do(of_tick(self._stage.store, *self._split(what), tick_ms))
        return f"nothing is known of {shown(tick_ms, zone)}" if said is None else said[0]

    # -- inside

    def _run(self, to_ms: int) -> None:
        if to_ms - self._stage.now_ms > _LONGEST_MS:
            now, then = (shown(min(ms, LAST_MS), self._zone) for ms in (self._stage.now_ms, to_ms))
            raise ScheduleError(f"from {now} to {then} it is longer than ten years", hint="let less time pass at once")
        for name in self._definitions:
            if not self._stage.cast.has(name):
                self._cast(name)
        self._stage.move_to(to_ms)

    def _take(self, source: Source) -> None:
        self._do(*self._stage.apply(source.definitions, source.calendars))
        self._functions |= source.functions
        self._definitions |= {each.seed: each for each in source.definitions}

    def _cast(self, name: str) -> None:
        """Find who plays a job, unless that is known: its function, or a stand-in for a command or a call."""
        if name not in self._functions:
            target = self._definitions[name].run
            self._functions[name] = _imported(name, target.function) if isinstance(target, PythonTarget) else _nothing
        if not self._stage.cast.has(name):
            self._stage.cast.give(name, self._functions[name])

    def _do(self, *work: Any) -> None:
        for each in work:
            done: Applied = each if isinstance(each, Applied) else self._stage.do(each)
            if done.done == "refused":
                raise RefusedError(f"{done.name}: {done.reason}")

    def _not_over(self, ms: int, what: str) -> None:
        if ms < self._stage.now_ms:
            now = shown(self._stage.now_ms, self._zone)
            raise ScheduleError(f"{what} {shown(ms, self._zone)}, which is over: it is {now}")

    def _name(self, job: str) -> str:
        """`tenant/name`; of the tenant `default`, or the only tenant that has such a job, if none is written."""
        if job in self._definitions:
            return job
        ends = [name for name in self._definitions if name.partition("/")[2] == job]
        if f"default/{job}" in ends or len(ends) == 1:
            return f"default/{job}" if f"default/{job}" in ends else ends[0]
        if ends:
            raise RefusedError(f"several tenants have a job {job!r}: write {' or '.join(sorted(ends))}")
        known = {name.partition("/")[2]: name for name in self._definitions}
        near = get_close_matches(job.rpartition("/")[2], known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(known)) or 'none'}"
        raise RefusedError(f"there is no job {job!r}; {hint}")

    def _split(self, job: str) -> tuple[str, str]:
        tenant, _, name = self._name(job).partition("/")
        return tenant, name

    def _span(self, job: str | None) -> tuple[str | None, str | None]:
        return (None, None) if job is None else self._split(job)

    def _zone_of(self, name: str) -> Zone:
        for entry in self._definitions[name].schedule:
            if isinstance(entry, CronEntry | OnceEntry) and entry.timezone:
                return zones.zone(entry.timezone)
        return self._zone

    def _tick_ms(self, job: str, at: When, zone: Zone) -> int:
        """A time of day is that of the latest tick up to now that shows it."""
        if isinstance(at, str) and ":" in at and "-" not in at:
            mine: Sequence[Ran | Answered] = [*self.runs(job), *self.ledger(job)]
            moments = [each.scheduled_for if isinstance(each, Ran) else each.first for each in mine if each == at]
            if moments:
                return round(max(moments).timestamp() * 1000)
            day_before = self._stage.now_ms - 86_400_000
            return instant_ms(at, zone, day_before, of_tick=True)
        return instant_ms(at, zone, self._stage.now_ms, of_tick=True)

    def _ran(self, line: RunLine) -> Ran:
        tries = self._stage.do(self._stage.store.past_attempts.of_run(line.run.run_id)) if line.run.attempt else ()
        return ran(line, tries, self._zone_of(line.job), _short(line))


def _policy(name: str, word: Misfire | None) -> Misfire | None:
    if word is None or word in POLICIES:
        return word
    raise RefusedError(f"{name}={word!r} says nothing: it is one of {', '.join(POLICIES)}")


def _refuse_unknown(slots: Mapping[str, int], pools: Set[str]) -> None:
    """A slip leaves the pool that was meant without slots. One more, beside all that are, is for a later deploy."""
    unknown = sorted(slots.keys() - pools)
    if unknown and not pools <= slots.keys():
        hint = f"there are: {', '.join(sorted(pools))}; name them all beside one of a later deploy"
        raise RefusedError(f"no job is in a pool {unknown[0]}; {hint}")


def _short(line: RunLine | LedgerLine) -> str:
    return line.name if line.tenant == "default" else f"{line.tenant}/{line.name}"


def _nothing() -> None:
    """A command or an HTTP call: it is not made here."""


def _called(function: Callable[..., Any]) -> Callable[[Context], Any]:
    """Whatever shape it has."""
    read = Handlers(())
    read.add("it", function)
    handler = read.get("it")
    assert handler is not None
    return lambda ctx: handler.function(*handler.given(ctx))


def _imported(job: str, function: str) -> Any:
    found = Handlers((function,))
    if (reason := found.find(function)) is not None:
        short = job.removeprefix("default/")
        raise RefusedError(f"{short}: {reason}; give it a handler: w.handler({short!r}, seconds=…)")
    handler = found.get(function)
    assert handler is not None
    return handler.function


__all__ = ["World", "world"]
