"""What attempts were and what they printed, to be read: also while they run, and from any node."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fleetcron.model.outcome import Fault
from fleetcron.store.engine import Engine, Row, Script


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """One attempt of a run. The one that runs has no end and no outcome yet."""

    attempt: int
    node_id: str
    started_ms: int
    finished_ms: int | None = None
    outcome: str | None = None
    error: Fault | None = None
    result: str | None = None  # JSON
    log_bytes: int = 0  # all that it printed, kept or not
    progress: float | None = None
    note: str | None = None

    @property
    def lasted_ms(self) -> int | None:
        return None if self.finished_ms is None else max(0, self.finished_ms - self.started_ms)


class LogPiece(NamedTuple):
    """`truncated`: after this one something was left out; the last that was printed may follow."""

    seq: int
    at_ms: int
    text: str
    truncated: bool


@dataclass(frozen=True, slots=True)
class LogPage:
    """Pieces of one attempt. `latest` is the last attempt that has begun; None: there is none yet. `ended`: this one
    is over. `is_final`: so is the run, and no other will begin."""

    attempt: int
    latest: int | None
    pieces: Sequence[LogPiece]
    ended: bool
    is_final: bool


class AttemptHistory:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def of_run(self, run_id: int) -> Sequence[PastAttempt]:
        """S1-13, S3-30: the first one first; the one that runs stands at the end."""

        def script() -> Script[list[PastAttempt]]:
            [facts] = yield "fleet_now", {}
            return (yield from attempts_of(run_id, facts["now_ms"]))

        return await self._engine.read(script)

    async def last_error(self, run_id: int) -> PastAttempt | None:
        """The last attempt that did not succeed."""

        def script() -> Script[PastAttempt | None]:
            found = yield "attempts_last_error", {"run_id": run_id}
            return _ended(found[0]) if found else None

        return await self._engine.read(script)

    async def log(
        self, run_id: int, attempt: int | None = None, *, after_seq: int = -1, limit: int = 100
    ) -> LogPage | None:
        """A page of what an attempt printed, of the latest one if none is named. From any node, also while it runs.
        None: there is no such run."""

        def script() -> Script[LogPage | None]:
            [facts] = yield "fleet_now", {}
            found = yield "attempts_standing", {"run_id": run_id, "now_ms": facts["now_ms"]}
            if not found:
                return None
            [row] = found
            latest: int | None = row["running"] or row["ended"]
            wanted = attempt or latest or 1
            page = {"run_id": run_id, "attempt": wanted, "after_seq": after_seq, "most": limit}
            pieces = [_piece(each) for each in (yield "attempt_logs_list", page)]
            is_final = row["finished_ms"] is not None
            return LogPage(wanted, latest, pieces, is_final or wanted <= (row["ended"] or 0), is_final)

        return await self._engine.read(script)


def attempts_of(run_id: int, now_ms: int) -> Script[list[PastAttempt]]:
    """Part of another script."""
    found = [_ended(row) for row in (yield "attempts_list", {"run_id": run_id})]
    running = yield "leases_running", {"run_id": run_id, "now_ms": now_ms}
    found += [
        PastAttempt(
            row["attempt"], row["node_id"], row["started_ms"], progress=row["progress"], note=row["note"]
        )
        for row in running
    ]  # fmt: skip
    return found


def _ended(row: Row) -> PastAttempt:
    error = None if row["error_code"] is None else Fault(row["error_code"], row["error_text"] or "", row["trace"])
    return PastAttempt(
        row["attempt"], row["node_id"], row["started_ms"], row["finished_ms"], row["outcome"], error, row["result"],
        row["log_bytes"],
    )  # fmt: skip


def _piece(row: Row) -> LogPiece:
    return LogPiece(row["seq"], row["at_ms"], row["text"], bool(row["truncated"]))
