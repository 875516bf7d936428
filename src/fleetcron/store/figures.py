"""Figures about runs, to be read: how many ended how, and how long they took.

There is no index by the end of a run: it would make every end of a run slower. Runs are numbered as they are created,
so whoever asks for a day finds the first run of the days that matter by halving, and reads on from there.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from fleetcron.store.engine import Engine, Row, Script

# A run that was created longer ago than this before the stretch is not looked for: it waited for days, or was replayed.
_EARLIER_MS: Final = 24 * 3_600_000


@dataclass(slots=True)
class Figures:
    """`states` is how many runs are in which state; of `timed` of them it is known how long they took."""

    states: Counter[str] = field(default_factory=Counter)
    timed: int = 0
    lasted_ms: int = 0
    longest_ms: int = 0

    @property
    def average_ms(self) -> int | None:
        return self.lasted_ms // self.timed if self.timed else None


class RunFigures:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def of_job(self, job_id: str, from_ms: int, to_ms: int) -> Figures:
        """S1-36: of the runs with a tick in [from, to). What has not ended counts as planned."""
        call = {"job_id": job_id, "from_ms": from_ms, "to_ms": to_ms}

        def script() -> Script[Figures]:
            return _figures((yield "runs_figures_of_job", call))

        return await self._engine.read(script)

    async def ended(self, tenant: str | None, since_ms: int) -> Figures:
        """S1-39: of the runs that have ended since an instant, of a tenant or of all."""

        def script() -> Script[Figures]:
            first = yield from _first_from(since_ms - _EARLIER_MS)
            return _figures((yield "runs_figures_ended", {"first_id": first, "since_ms": since_ms, "tenant": tenant}))

        return await self._engine.read(script)


def _first_from(created_ms: int) -> Script[int]:
    """The first run that was created at an instant or later, or one before it: clocks may have gone back."""
    [last] = yield "runs_last", {}
    low, high = 0, last["run_id"] + 1
    while low < high:
        middle = (low + high) // 2
        found = yield "runs_from", {"run_id": middle}
        if found and found[0]["created_ms"] < created_ms:
            low = found[0]["run_id"] + 1
        else:
            high = middle
    return low


def _figures(found: list[Row]) -> Figures:
    made = Figures()
    for row in found:
        made.states[row["state"]] += row["runs"]
        made.timed += row["timed"]
        made.lasted_ms += int(row["lasted_ms"])
        made.longest_ms = max(made.longest_ms, int(row["longest_ms"]))
    return made
