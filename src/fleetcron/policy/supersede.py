"""Which ticks of the past get a run when somebody asks for them, and what is left of the ledger. Pure.

The answer of a tick is its run or its line in the ledger, never both: a line whose ticks get runs is split, and what is
left of it is counted with the timetable that it was written with.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fleetcron.errors import StoreError
from fleetcron.model.answer import Answer, Forecast
from fleetcron.model.past import Entry, Filling, Past, Superseded
from fleetcron.times.timetable import Timetable


def fill(past: Past, timetable: Timetable, ticks: Sequence[int], known: Mapping[tuple[int, int], Timetable]) -> Filling:
    """`ticks` are those of the job now, `known` the timetables of the ledger's lines by (timing, epoch)."""
    undecided = {tick for tick in ticks if _is_undecided(past, tick)}
    asked = [tick for tick in ticks if tick not in undecided and tick not in past.runs]
    shades = [(entry.answer, known[entry.timing_id, entry.almanac]) for entry in past.entries if _is_shadow(entry)]
    wanted = [tick for tick in asked if not any(_is_in(answer, tick, table) for answer, table in shades)]
    runs = [Forecast(tick, timetable.start_ms(tick), "catchup") for tick in wanted]
    lines = [
        each for entry in past.entries for each in _superseded(entry, wanted, known[entry.timing_id, entry.almanac])
    ]
    existing = len(past.runs.intersection(ticks) - undecided)
    return Filling(runs, lines, existing, len(undecided), shadowed=len(asked) - len(wanted))


def split(answer: Answer, taken: Sequence[int], timetable: Timetable) -> list[Answer]:
    """What is left of a line without some of its ticks."""
    rest: list[Answer] = []
    after = answer.from_ms - 1
    for tick in (*sorted(taken), answer.to_ms + 1):
        rest += _stretch(answer, after, tick - 1, timetable)
        after = tick
    return rest


def _stretch(answer: Answer, after: int, until: int, timetable: Timetable) -> Iterator[Answer]:
    first = timetable.next_ms(after)
    if first is not None and first <= until:
        last = timetable.prev_ms(until + 1) or first
        yield replace(answer, from_ms=first, to_ms=last, ticks=timetable.count_ms(after, until))


def _is_shadow(entry: Entry) -> bool:
    """What the old scheduler ran must not run again, whoever asks for the whole stretch."""
    return entry.answer.reason == "shadow"


def _is_in(answer: Answer, tick: int, timetable: Timetable) -> bool:
    return answer.from_ms <= tick <= answer.to_ms and timetable.next_ms(tick - 1) == tick


def _superseded(entry: Entry, wanted: Sequence[int], timetable: Timetable) -> Iterator[Superseded]:
    """An instant within a line that was no tick when the line was written has no answer in it."""
    answer = entry.answer
    taken = [tick for tick in wanted if _is_in(answer, tick, timetable)]
    if not taken:
        return
    counted = timetable.count_ms(answer.from_ms - 1, answer.to_ms)
    if counted != answer.ticks:
        raise StoreError(f"line {entry.entry_id} of the ledger says {answer.ticks} ticks, its timetable has {counted}")
    yield Superseded(entry, tuple(taken), tuple(split(answer, taken, timetable)))


def _is_undecided(past: Past, tick: int) -> bool:
    """Not planned yet, or in a gap: the scheduler answers it."""
    return tick > past.cursor_ms or any(after < tick <= until for after, until in past.gaps)
