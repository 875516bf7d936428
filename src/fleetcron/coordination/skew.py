"""How far a node's clock is from the database's.

The database's is right by definition, and the node's only decides when to ask. One that is far off is still a sign of a
sick machine, so nodes with better clocks plan instead of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from fleetcron.store.nodes import SeenNode


class Verdict(Enum):
    FINE = "fine"
    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Offset:
    """What the database's clock is ahead. The truth lies within `uncertainty_ms` on either side."""

    ms: int
    uncertainty_ms: int

    def verdict(self, warn_ms: int, refuse_ms: int) -> Verdict:
        """Judged in favour of the node: a slow reply is no skew."""
        sure_ms = abs(self.ms) - self.uncertainty_ms
        if sure_ms > refuse_ms:
            return Verdict.REFUSE
        return Verdict.WARN if sure_ms > warn_ms else Verdict.FINE

    def __str__(self) -> str:
        return f"{abs(self.ms) / 1000:.3f} s {'behind' if self.ms > 0 else 'ahead of'} the database's"


def measured(sent_ms: int, round_trip_ms: int, database_ms: int) -> Offset:
    """`sent_ms` is the node's clock when it asked; the database looked at its own somewhere in the round trip."""
    half = (round_trip_ms + 1) // 2
    return Offset(database_ms - sent_ms - round_trip_ms // 2, half)


def with_good_clocks(nodes: Iterable[SeenNode], refuse_ms: int) -> list[SeenNode]:
    """Those who may plan. If nobody's clock agrees with the database's, all may: the odd one out is the database then,
    and its time is the one that counts."""
    all_nodes = list(nodes)
    return [one for one in all_nodes if abs(one.clock_offset_ms) <= refuse_ms] or all_nodes
