"""How long attempts take in a rehearsal, and how they end. Pure: the same tick of the same job takes the same time,
whatever else is changed, so that two rehearsals differ only by what was changed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

from fleetcron.model.outcome import Lost, Outcome, Snoozed, Succeeded

DEFAULT_MS: Final = 5_000

BY_OVERLAP: Final = "cancel_previous: "  # how the reasons of policy/overlap begin

Tick: TypeAlias = tuple[str, int]  # tenant/name, scheduled_for_ms


class Stopping(NamedTuple):
    """How an attempt was stopped that the next tick asked to stop."""

    ms: int  # that it went on then
    by_ms: int  # after its start it was over


class Lasting(NamedTuple):
    """No outcome: nobody saw its end, and it went on for at least so long. If it is asked to stop, it does so at once,
    or as it did then."""

    ms: int
    outcome: Outcome | None = Succeeded()
    stopping: Stopping | None = None


@dataclass(frozen=True, slots=True)
class Durations:
    """What was said comes first (by patterns of names: the first one that fits), then what really was, then what was
    seen of the job before, then the default.

    `seen` is what ended by itself, and `cut` is after how long the next tick put an end to the others: they would have
    taken longer than those that were seen, and without them no job ever takes longer than its interval. Both are
    sorted."""

    said: Mapping[str, int] = field(default_factory=dict)
    past: Mapping[Tick, Sequence[Lasting]] = field(default_factory=dict)
    seen: Mapping[str, Sequence[int]] = field(default_factory=dict)
    default_ms: int = DEFAULT_MS
    cut: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def of(self, job: str, scheduled_for_ms: int, attempt: int) -> Lasting:
        for pattern, ms in self.said.items():
            if matches(pattern, job):
                return Lasting(ms)
        usual = Lasting(self._usual_ms(job, scheduled_for_ms, attempt))
        past = self.past.get((job, scheduled_for_ms))
        if not past:
            return usual
        known = past[min(attempt, len(past)) - 1]  # after the last one that was: as that one
        if known.outcome is None:
            return Lasting(known.ms + self._further_ms(job, scheduled_for_ms, attempt), stopping=known.stopping)
        if attempt > len(past) and _costs_nothing(known.outcome):  # it would be for ever
            return usual
        return known

    def _usual_ms(self, job: str, scheduled_for_ms: int, attempt: int) -> int:
        """As one of those that were seen, or were cut: all of them in turn."""
        seen, cut = self.seen.get(job, ()), self.cut.get(job, ())
        if not cut:
            return self._further_ms(job, scheduled_for_ms, attempt)
        at = int(_share(job, scheduled_for_ms, attempt) * (len(seen) + len(cut)))
        if at < len(seen):
            return seen[at]
        return cut[at - len(seen)] + self._further_ms(job, scheduled_for_ms, -attempt)  # another draw

    def _further_ms(self, job: str, scheduled_for_ms: int, attempt: int) -> int:
        """As those that nobody put an end to. So one goes on, too, of which only the beginning is known."""
        seen = self.seen.get(job)
        return seen[int(_share(job, scheduled_for_ms, attempt) * len(seen))] if seen else self.default_ms

    def origins(self, jobs: Sequence[str]) -> Mapping[str, int]:
        """How many of these jobs have their durations from where: said, past, seen, default."""
        remembered = {job for job, _ in self.past}
        found: Counter[str] = Counter()
        for job in jobs:
            if any(matches(pattern, job) for pattern in self.said):
                found["said"] += 1
            elif job in remembered:
                found["past"] += 1
            else:
                found["seen" if self.seen.get(job) or self.cut.get(job) else "default"] += 1
        return found


def _costs_nothing(outcome: Outcome) -> bool:
    return isinstance(outcome, Snoozed) or (isinstance(outcome, Lost) and outcome.is_orderly)


def matches(pattern: str, job: str) -> bool:
    """`*`, `report`, `acme/*`: without a tenant it is any tenant's."""
    return fnmatchcase(job, pattern if "/" in pattern else f"*/{pattern}")


def narrowest_first(said: Mapping[str, int]) -> dict[str, int]:
    """In the order in which they count: a name before a pattern, and the pattern with more letters before others, in
    whatever order somebody wrote them."""
    return dict(sorted(said.items(), key=lambda each: (any(sign in each[0] for sign in "*?["), -len(each[0]))))


def _share(job: str, scheduled_for_ms: int, attempt: int) -> float:
    """From 0 to 1, evenly spread, and always the same for the same attempt."""
    text = f"{job}@{scheduled_for_ms}/{attempt}".encode()
    return int.from_bytes(blake2b(text, digest_size=6).digest(), "big") / (1 << 48)
