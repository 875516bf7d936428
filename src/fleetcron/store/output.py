"""What attempts print and how far they are, written while they run.

Pieces are numbered, so that whoever sends one twice keeps it once. They belong to one attempt and are taken only from
the node that holds or held it: what a zombie still prints stays in its own attempt. Of each attempt the beginning is
kept, and the end after a mark; the executor leaves out what lies between, but workers elsewhere may not.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from fleetcron.steps import step
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.rows import rows
from fleetcron.store.written import Ok, Refused, Written

KEPT_BYTES: Final = (8 * 1024 + 64) * 1024  # of what one attempt prints: its beginning, and its end
_HALF: Final = 3  # bytes of a character that a cut leaves out: an attempt that was cut here is full all the same
_STRIDE: Final = KEPT_BYTES // 32
_REMEMBERED: Final = 10_000  # attempts
_NOTE: Final = 200

Whose: TypeAlias = tuple[str, int, int]  # node, run and attempt


class Piece(Protocol):
    @property
    def run_id(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def seq(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def truncated(self) -> bool: ...


class Mark(Protocol):
    @property
    def run_id(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def share(self) -> float: ...
    @property
    def note(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Appended:
    """`refused` pieces came from a node that never had the attempt; those beyond the limit are in neither number."""

    pieces: int = 0
    refused: int = 0


class AttemptOutput:
    """What is kept is counted only now and then: 256 pieces of 64 attempts that have 2,000 pieces each took 28 ms, and
    with a count each time 255 ms on PostgreSQL and 620 ms on SQLite. After a count, so many bytes more are taken
    without one as are left, but at most a `_STRIDE`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sure: dict[Whose, int] = {}

    async def append(self, node_id: str, pieces: Sequence[Piece], marks: Sequence[Mark] = ()) -> Written[Appended]:
        """Safe to repeat: a piece that is there stays as it is, and of the marks of an attempt the last one counts."""
        sure, doubtful = self._part(node_id, [_New(each) for each in sorted(pieces, key=_place)])
        asked = rows({"run_id": each.run_id, "attempt": each.attempt, "seq": each.seq} for each in doubtful)
        reached = rows(_mark_rows(marks))

        def script() -> Script[tuple[Appended, dict[Whose, int]] | Refused]:
            step("output.begin")
            taken = list(sure)
            room: dict[Whose, int] = {}
            if doubtful:
                found = yield "attempt_logs_kept", {"rows": asked, "node_id": node_id}
                fitting, room = _fitting(node_id, doubtful, found)
                taken += fitting
            if taken:
                [facts] = yield "fleet_now", {}
                yield "attempt_logs_insert", {"rows": rows(each.row() for each in taken), "now_ms": facts["now_ms"]}
            if marks:
                yield "leases_progress", {"rows": reached, "node_id": node_id}
            step("output.written")
            return Appended(len(taken), sum(each.whose(node_id) not in room for each in doubtful)), room

        written = await self._engine.write(script)
        if not isinstance(written, Ok):
            return written
        done, room = written.value
        if len(self._sure) > _REMEMBERED:
            self._sure.clear()
        self._sure |= {whose: min(left, _STRIDE) for whose, left in room.items()}
        return Ok(done)

    def _part(self, node_id: str, pieces: Sequence["_New"]) -> tuple[list["_New"], list["_New"]]:
        """Those that surely fit, and those for which somebody has to count."""
        wanted: Counter[Whose] = Counter()
        for each in pieces:
            wanted[each.whose(node_id)] += len(each.data)
        fits = {whose for whose, size in wanted.items() if size <= self._sure.get(whose, -1)}
        for whose in wanted:
            if whose in fits:
                self._sure[whose] -= wanted[whose]
            else:
                self._sure.pop(whose, None)
        for each in pieces:
            if each.truncated:  # whatever comes after it is counted: it is taken whole or not at all
                self._sure.pop(each.whose(node_id), None)
        sure = [each for each in pieces if each.whose(node_id) in fits]
        return sure, [each for each in pieces if each.whose(node_id) not in fits]


class _New:
    """A piece that is to be kept, as bytes."""

    __slots__ = ("attempt", "data", "run_id", "seq", "truncated")

    def __init__(self, piece: Piece) -> None:
        self.run_id, self.attempt, self.seq, self.truncated = piece.run_id, piece.attempt, piece.seq, piece.truncated
        self.data = _storable(piece.text)

    def whose(self, node_id: str) -> Whose:
        return node_id, self.run_id, self.attempt

    def cut(self, size: int) -> "_New":
        """Only its beginning, which says that it is not all."""
        shorter = copy(self)
        shorter.data, shorter.truncated = self.data[:size], True
        return shorter

    def row(self) -> dict[str, object]:
        return {
            "run_id": self.run_id,
            "attempt": self.attempt,
            "seq": self.seq,
            "truncated": int(self.truncated),
            "text": self.data.decode("utf-8", "ignore"),  # half a character at a cut
        }


def _fitting(node_id: str, pieces: Sequence[_New], found: Sequence[Row]) -> tuple[list[_New], dict[Whose, int]]:
    """The pieces that are new and fit, and how much room is left then. The one that reaches the limit is cut there.
    What comes after a mark, be it this one or one of the executor, is taken only if it fits."""
    marked = {(node_id, row["run_id"], row["attempt"]): bool(row["truncated"]) for row in found}
    room = {
        whose: _room(KEPT_BYTES - row["bytes"], marked[whose])
        for row in found
        for whose in [(node_id, row["run_id"], row["attempt"])]
    }
    there = {(row["run_id"], row["attempt"], row["seq"]) for row in found if row["there"]}
    fitting: list[_New] = []
    for each in pieces:
        whose = each.whose(node_id)
        fits = len(each.data) <= room.get(whose, -1)
        if whose not in room or (marked[whose] and not fits) or (each.run_id, each.attempt, each.seq) in there:
            continue
        kept = each if fits else each.cut(room[whose])
        marked[whose] |= kept.truncated
        room[whose] = _room(room[whose] - len(kept.data), marked[whose])
        fitting.append(kept)
    return fitting, room


def _room(left: int, marked: bool) -> int:
    return -1 if marked and left <= _HALF else max(0, left)


def _mark_rows(marks: Sequence[Mark]) -> Iterable[dict[str, object]]:
    newest = {(each.run_id, each.attempt): each for each in marks if math.isfinite(each.share)}
    for each in newest.values():
        note = _storable(each.note).decode()[:_NOTE]
        share = min(1.0, max(0.0, each.share))
        yield {"run_id": each.run_id, "attempt": each.attempt, "share": share, "note": note}


def _storable(text: str) -> bytes:
    """No database takes a NUL, nor half of a pair of surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace")


def _place(piece: Piece) -> tuple[int, int, int]:
    return piece.run_id, piece.attempt, piece.seq
