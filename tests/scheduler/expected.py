"""What must become of the ticks of one job, told step by step: every tick enumerated, every answer by itself.

A revision's ticks are those after the instant it was written, up to and including the instant of the next change. A
`Piece` is such a stretch: one revision under one set of tables. What was decided stays; what was only planned after a
change is taken back with it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from fleetcron.model.definition import Definition
from fleetcron.model.rules import MisfireRule
from tests.scheduler.enumerator import Book, When, when


@dataclass(frozen=True)
class Run:
    run_after: int
    lane: str = "live"
    covers: int = 1
    window: tuple[int, int] | None = None


@dataclass(frozen=True)
class Line:
    """A tick in the ledger. Where two reasons hold at once, either is right."""

    answer: str
    reasons: frozenset[str]
    covered_by: int | None = None


Fate = Run | Line


@lru_cache(maxsize=64)
def line(answer: str, *reasons: str, covered_by: int | None = None) -> Line:
    return Line(answer, frozenset(reasons), covered_by)


def late_ones(
    ticks: When, found: list[int], grace_ms: int, now_ms: int, start_deadline_ms: int | None = None
) -> list[int]:
    """Those of some ticks in a row that are late: their grace is over, or the next tick is there."""
    late = []
    for at, tick in enumerate(found):
        following = found[at + 1] if at + 1 < len(found) else ticks.next(tick)
        too_late = start_deadline_ms is not None and now_ms > tick + start_deadline_ms
        if too_late or (following is not None and now_ms > following) or now_ms > ticks.start(tick) + grace_ms:
            late.append(tick)
    return late


def late_fates(
    ticks: When,
    late: list[int],
    rule: MisfireRule,
    noticed_ms: int,
    *,
    start_deadline_ms: int | None = None,
    policy: str | None = None,
    skipped: str = "misfire",
) -> dict[int, Fate]:
    """The misfire policy, tick by tick. `policy` is what somebody chose for this stretch alone."""
    policy = policy or rule.policy
    if policy == "skip":
        return {tick: line("skipped", skipped) for tick in late}
    fates: dict[int, Fate] = {}
    for tick in late:
        reasons = ["too_old"] if tick < noticed_ms - rule.window_ms else []
        if start_deadline_ms is not None and tick + start_deadline_ms < noticed_ms:
            reasons.append("start_deadline")
        if reasons:
            fates[tick] = line("missed", *reasons)
    fresh = [tick for tick in late if tick not in fates]
    if policy == "all":
        kept = fresh[-rule.limit :]
        fates |= {tick: line("missed", "over_limit") for tick in fresh[: -rule.limit]}
        lane = rule.lane if rule.policy == "all" else "catchup"
        return fates | {tick: Run(ticks.start(tick), lane) for tick in kept}
    if not fresh:
        return fates
    first, last = fresh[0], fresh[-1]
    fates |= {tick: line("skipped", "covered", covered_by=last) for tick in fresh[:-1]}
    before = ticks.prev(first)
    window = (first if before is None else before, last) if len(fresh) > 1 else None
    return fates | {last: Run(ticks.start(last), rule.lane, len(fresh), window)}


@dataclass
class Piece:
    """A stretch (begin, end] of one revision under one book; `used` ticks of max_ticks were used before it."""

    begin: int
    definition: Definition
    created_ms: int
    book: Book
    revisions: set[int]
    used: int = 0
    end: int | None = None

    @property
    def when(self) -> When:
        return when(self.definition, self.created_ms, self.book)

    def ticks(self, after: int, until: int) -> list[int]:
        until = until if self.end is None else min(until, self.end)
        found = self.when.between(self.begin, until)
        if self.definition.max_ticks is not None:
            found = found[: max(0, self.definition.max_ticks - self.used)]
        return [tick for tick in found if tick > after]

    def has_more(self, now_ms: int) -> bool:
        """Whether a tick is yet to come."""
        if self.definition.max_ticks is not None:
            following = self.when.next(max(now_ms, self.begin))
            return following is not None and bool(self.ticks(now_ms, following))
        return self.when.next(max(now_ms, self.begin)) is not None


@dataclass
class ExpectedJob:
    job_id: str
    piece: Piece  # the one that holds now
    mark: int  # every tick up to here is planned or decided
    state: str = "active"
    revision: int = 1
    fates: dict[int, Fate] = field(default_factory=dict)
    revisions: dict[int, frozenset[int]] = field(default_factory=dict)  # under which each fate may be written
    books: dict[int, Book] = field(default_factory=dict)
    past: list[Piece] = field(default_factory=list)  # while the job was active or paused
    waiting: list[Piece] = field(default_factory=list)  # paused stretches, undecided
    open: set[int] = field(default_factory=set)  # ticks whose fate may not be written yet
    claimed: set[int] = field(default_factory=set)
    changed: int = 0  # the instant of its last change

    # -- the scheduler

    def round(self, now_ms: int, lookahead_ms: int) -> None:
        if self.state != "active":
            return
        found = self.piece.ticks(self.mark, max(self.mark, now_ms + lookahead_ms))
        if not found:
            return
        self._plan(found, now_ms)
        self.mark = found[-1]

    def _plan(self, found: list[int], now_ms: int, *, later: bool = False) -> None:
        rule = self.piece.definition.misfire
        ticks = self.piece.when
        late = late_ones(ticks, found, rule.grace_ms, now_ms, self.piece.definition.start_deadline_ms)
        fates = self._late(self.piece, late, now_ms)
        fates |= {tick: Run(ticks.start(tick)) for tick in found if tick not in fates}
        self._write(self.piece, fates)
        if later or rule.policy == "all":
            self.open |= set(found if later else late)

    def _late(self, piece: Piece, late: list[int], now_ms: int, **chosen: str) -> dict[int, Fate]:
        definition = piece.definition
        deadline = definition.start_deadline_ms
        return late_fates(piece.when, late, definition.misfire, now_ms, start_deadline_ms=deadline, **chosen)

    def _write(self, piece: Piece, fates: Mapping[int, Fate]) -> None:
        for tick, fate in fates.items():
            assert tick not in self.fates, f"the model answers {tick} twice"
            self.fates[tick] = fate
            self.revisions[tick] = frozenset(piece.revisions)
            self.books[tick] = piece.book

    # -- changes

    def edit(self, definition: Definition, now_ms: int, book: Book) -> None:
        created = self.piece.created_ms
        if self.state in ("active", "paused") and definition.timing(created) == self.piece.definition.timing(created):
            self.revision += 1  # the same rules go on; only what was planned ahead is planned anew
            self.piece.revisions.add(self.revision)
            self.piece.definition = definition
            self.changed = now_ms
            if self.state == "active":
                self._withdraw(now_ms)
                self.mark = min(self.mark, now_ms)
            return
        self._leave(now_ms)
        self.revision += 1
        if self.state == "finished":
            self.state = "active"
        both = definition.max_ticks is not None and self.piece.definition.max_ticks is not None
        self._begin(now_ms, definition, book, used=self._used() if both else 0)

    def tables(self, now_ms: int, book: Book, *, kept: bool) -> None:
        """Other tables hold from now on. `kept`: the forecasts are the same, and stay."""
        if kept:
            mark = self.mark
            assert not self.piece.ticks(mark, now_ms), "ticks of the old tables were undecided"
            self._close(now_ms)
        else:
            mark = now_ms
            self._leave(now_ms)
        self._begin(now_ms, self.piece.definition, book, used=self._used(), revisions=set(self.piece.revisions))
        self.mark = mark
        if kept:
            for tick, fate in self.fates.items():  # what they are to be under the new tables
                if tick > now_ms and isinstance(fate, Run) and tick not in self.claimed:
                    self.fates[tick] = replace(fate, run_after=self.piece.when.start(tick))

    def pause(self, now_ms: int) -> None:
        self.revision += 1
        if self.state == "paused":
            self.piece.revisions.add(self.revision)
            self.changed = now_ms
            return
        self._leave(now_ms)
        self._begin(now_ms, self.piece.definition, self.piece.book, used=self._used())
        self.state = "paused"

    def resume(self, now_ms: int, policy: str) -> None:
        self._leave(now_ms)
        if self.state == "paused":
            for piece in self.waiting:
                ticks = piece.ticks(piece.begin, now_ms)
                self._write(piece, self._late(piece, ticks, now_ms, policy=policy, skipped="paused"))
                self.open |= set(ticks)
            self.waiting.clear()
        self.revision += 1
        self._begin(now_ms, self.piece.definition, self.piece.book, used=self._used())
        self.state = "active"

    def end(self, now_ms: int, reason: str, answered: Iterable[int]) -> None:
        """Cancelled or deleted: what has no answer yet is cancelled. `answered` is what the store has."""
        ended: list[int] = []
        if self.state in ("active", "paused"):
            if self.state == "active":
                ended = self.piece.ticks(self.mark, now_ms)
                self._write(self.piece, {tick: line("cancelled", reason) for tick in ended})
                self._withdraw(now_ms)
                self._close(now_ms)
            else:
                self._leave(now_ms)
            for piece in self.waiting:
                found = piece.ticks(piece.begin, now_ms)
                self._write(piece, {tick: line("cancelled", reason) for tick in found})
                ended += found
            self.waiting.clear()
        unanswered = self.open - set(answered)
        for tick in unanswered:  # one that was cancelled and is deleted before anybody wrote so may tell either
            self.fates[tick] = line("cancelled", *{reason, "job_cancelled" if self.state == "ended" else reason})
        self.open = unanswered | set(ended)
        self.revision += 1
        self.state = "ended"

    def finish(self, now_ms: int) -> None:
        """Its last tick has come."""
        assert not self.piece.has_more(now_ms), "finished although ticks are to come"
        self._close(now_ms)
        self.state = "finished"

    def _leave(self, now_ms: int) -> None:
        """End the piece: undecided ticks up to now are decided as of now, or when the job is resumed."""
        if self.state == "paused":
            self._close(now_ms)
            self.waiting.append(self.piece)
        elif self.state == "active":
            found = self.piece.ticks(self.mark, now_ms)
            self._plan(found, now_ms, later=True)
            self._withdraw(now_ms)
            self._close(now_ms)

    def _withdraw(self, now_ms: int) -> None:
        for tick in [tick for tick in self.fates if tick > now_ms and tick not in self.claimed]:
            del self.fates[tick], self.revisions[tick], self.books[tick]

    def _close(self, now_ms: int) -> None:
        self.piece.end = now_ms
        self.past.append(self.piece)
        self.changed = now_ms

    def settled(self) -> int:
        """No change begins before this: what was answered up to here cannot be taken back."""
        stands = [t for t, fate in self.fates.items() if isinstance(fate, Line) or fate.lane == "catchup"]
        return max([self.changed, *stands, *self.claimed])

    def _used(self) -> int:
        last = self.piece
        return last.used + len(last.ticks(last.begin, last.end or last.begin)) if last.definition.max_ticks else 0

    def _begin(
        self, now_ms: int, definition: Definition, book: Book, *, used: int, revisions: set[int] | None = None
    ) -> None:
        self.piece = Piece(now_ms, definition, self.piece.created_ms, book, revisions or {self.revision}, used)
        self.mark = self.changed = now_ms

    # -- the law

    def ticks_until(self, now_ms: int) -> list[int]:
        """Every tick that the job has had up to now."""
        pieces = [*self.past, *([self.piece] if self.state == "active" else [])]
        found = [tick for piece in pieces for tick in piece.ticks(piece.begin, now_ms)]
        waiting = {tick for piece in self.waiting for tick in piece.ticks(piece.begin, now_ms)}
        return sorted(tick for tick in found if tick not in waiting)

    def check(self, now_ms: int) -> None:
        """The model itself: every tick up to now has a fate, and nothing else has one."""
        assert {tick for tick in self.fates if tick <= now_ms} == set(self.ticks_until(now_ms))
