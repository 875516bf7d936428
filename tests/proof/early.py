"""Whether a start was early, where the database's clock jumps. Pure.

The promise: nothing starts before its instant has come at the database, as far as its worker can know. A worker knows
what the replies said (`worker/dbtime.py`); the last one that it surely has is that of the claim of this very run, and a
run is claimed at most `ahead` before its instant. So what it believes is never older than that, and one reply is enough
to notice a jump. It follows:

- without a jump in that time a start is early if it comes a millisecond too soon;
- after a jump back it may begin by the clock from before it, for so long and not longer;
- after a jump ahead it may begin by the new clock at once (who has asked knows it), and by the old one, which is later;
- of several jumps in that time it may have heard of any, so the latest time that was shown counts.

What is seen is not the decision of the worker but the first line of a handler, which comes later: that lag makes the
time longer for which an old clock may have been believed. It never makes a start look later than it was, for the line
is compared with the clocks of the moment at which it was written.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple


class Jump(NamedTuple):
    """From this moment of the right clock on, the database's is so much ahead of it."""

    at_ms: int
    shift_ms: int


def latest_ms(at_ms: int, jumps: Sequence[Jump], believed_ms: int) -> int:
    """The latest time that a worker could believe to be at the database, at this moment of the right clock. `jumps` are
    in order, the first one before everything; `believed_ms` is for how long an old clock is believed."""
    moments = [jump.at_ms for jump in jumps]
    first = bisect_right(moments, at_ms - believed_ms) - 1
    last = bisect_right(moments, at_ms)
    return at_ms + max(jump.shift_ms for jump in jumps[max(0, first) : last])


def is_early(due_ms: int, at_ms: int, jumps: Sequence[Jump], believed_ms: int) -> bool:
    return latest_ms(at_ms, jumps, believed_ms) < due_ms
