"""`client.runs` and `client.dead`: look at runs, follow them, cancel and replay them."""

from collections.abc import Iterable
from typing import Final

from fleetcron.client import run_shapes as shapes
from fleetcron.client.calls import Call, F, Noun, Story, stream, verb, walk
from fleetcron.client.errors import Unavailable
from fleetcron.client.values import Instant
from fleetcron.client.wire import Play, Sleep, timed

FINAL: Final = ("succeeded", "dead", "cancelled", "skipped", "expired", "merged")
_LOOK_AGAIN: Final = (0.1, 2.0)  # seconds: the first wait between two looks, and the longest


class Runs(Noun[F]):
    """A run is named by its number, which is the same in all of fleetcron."""

    @verb("GET", "/runs")
    def page(
        self,
        *,
        job: str | None = None,
        state: shapes.State | None = None,
        since: Instant | None = None,
        until: Instant | None = None,
        planned: bool = False,
        tenant: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[shapes.RunPage]:
        """One page, the newest first. `planned`: also runs that are planned for later."""
        return Call(
            query={
                "tenant": self.of(tenant), "job": job, "state": state, "from": since, "to": until,
                "planned": planned, "limit": limit, "cursor": cursor,
            }
        )  # fmt: skip

    list = walk(page, "runs", shapes.Run)

    @verb("GET", "/runs/{run_id}")
    def get(self, run_id: int) -> Call[shapes.FullRun]:
        """With its attempts, its payload, and why it stands where it stands."""
        return Call({"run_id": run_id})

    @verb("GET", "/runs/{run_id}/attempts")
    def attempts(self, run_id: int) -> Call[shapes.Attempts]:
        """The first one first; the one that runs stands at the end."""
        return Call({"run_id": run_id})

    @verb("GET", "/runs/{run_id}/why")
    def why(self, run_id: int) -> Call[shapes.Why]:
        """One sentence, and what it stands on."""
        return Call({"run_id": run_id})

    @verb("GET", "/runs/{run_id}/log")
    def log_page(
        self, run_id: int, *, attempt: int | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Call[shapes.Log]:
        """One page of what an attempt printed; of the latest unless one is named."""
        return Call({"run_id": run_id}, {"attempt": attempt, "limit": limit, "cursor": cursor})

    log = walk(log_page, "pieces", shapes.LogPiece)

    @stream("/runs/{run_id}/log/stream")
    def follow(self, run_id: int, *, attempt: int | None = None) -> Call[shapes.LogPiece]:
        """What it printed and what it prints, until it is final; from attempt to attempt unless one is named. A stream
        that breaks goes on where it was."""
        return Call({"run_id": run_id}, {"attempt": attempt})

    @Story
    def wait(self, run_id: int, *, timeout: float | None = None) -> Play[shapes.FullRun]:
        """The run when it is final, whatever it ended as. Unavailable if it is not within `timeout` seconds, or the
        API is away for longer than the client's `patience`."""
        pause, longest = _LOOK_AGAIN
        waited = 0.0
        while True:
            terms = self._face.terms.waiting(None if timeout is None else max(0.0, timeout - waited))
            run, slept = yield from timed(Runs.get.under(terms, self, run_id))
            if run["state"] in FINAL:
                return run
            waited += slept
            left = longest if timeout is None else timeout - waited
            if left <= 0:
                raise Unavailable(
                    f"run {run_id} is still {run['state']} after {timeout:g} s: {run['why']}", code="late"
                )
            pause = min(pause, left)
            yield Sleep(pause)
            waited, pause = waited + pause, min(longest, pause * 1.5)

    @verb("POST", "/runs/{run_id}/cancel")
    def cancel(self, run_id: int, *, reason: str | None = None) -> Call[shapes.SteeredRun]:
        """At once, if it does not run; a running one is asked to stop. Conflict if it is final."""
        return Call({"run_id": run_id}, body={"reason": reason}, once=True)

    @verb("POST", "/runs/{run_id}/replay")
    def replay(self, run_id: int) -> Call[shapes.SteeredRun]:
        """Open a dead or cancelled run again: the same run, with the same idempotency key."""
        return Call({"run_id": run_id}, once=True)

    @verb("POST", "/runs/{run_id}/discard")
    def discard(self, run_id: int, reason: str) -> Call[shapes.SteeredRun]:
        """Take a dead run from the list of dead letters; it stays in the history."""
        return Call({"run_id": run_id}, body={"reason": reason}, once=True)

    @verb("POST", "/runs/cancel")
    def cancel_many(self, run_ids: Iterable[int], *, reason: str | None = None) -> Call[shapes.SteeredRuns]:
        """Up to 1,000, with an answer for each."""
        return Call(body={"run_ids": [*run_ids], "reason": reason}, once=True)

    @verb("POST", "/runs/replay")
    def replay_many(self, run_ids: Iterable[int]) -> Call[shapes.SteeredRuns]:
        """Up to 1,000, with an answer for each."""
        return Call(body={"run_ids": [*run_ids]}, once=True)

    @verb("POST", "/runs/discard")
    def discard_many(self, run_ids: Iterable[int], reason: str) -> Call[shapes.SteeredRuns]:
        """Up to 1,000, with an answer for each."""
        return Call(body={"run_ids": [*run_ids], "reason": reason}, once=True)


class Dead(Noun[F]):
    """Dead letters: runs that have failed for good and that nobody has discarded."""

    @verb("GET", "/dead")
    def page(
        self,
        *,
        job: str | None = None,
        type: str | None = None,  # noqa: A002 - the name of the parameter
        error: str | None = None,
        since: Instant | None = None,
        until: Instant | None = None,
        tenant: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[shapes.DeadPage]:
        """One page, the newest first. `error` is the code of the last error."""
        return Call(
            query={
                "tenant": self.of(tenant), "job": job, "type": type, "error": error, "from": since, "to": until,
                "limit": limit, "cursor": cursor,
            }
        )  # fmt: skip

    list = walk(page, "dead", shapes.DeadLetter)

    @verb("POST", "/dead/replay")
    def replay(
        self,
        *,
        job: str | None = None,
        type: str | None = None,  # noqa: A002 - the name of the parameter
        error: str | None = None,
        since: Instant | None = None,
        until: Instant | None = None,
        limit: int | None = None,
        dry_run: bool = False,
        tenant: str | None = None,
    ) -> Call[shapes.ReplayedMany]:
        """All that are like that, the oldest first. Safe to repeat: what was replayed is not met again."""
        said = {"job": job, "type": type, "error": error, "from": since, "to": until, "dry_run": dry_run}
        more = {} if limit is None else {"limit": limit}
        return Call(query={"tenant": self.of(tenant)}, body={**said, **more}, once=True)
