"""What a run printed, page by page; and what it prints from now on, as server-sent events."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Annotated, Any, Final, TypeAlias

from fastapi import Header, Query
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from fleetcron.api import run_shapes as shapes
from fleetcron.api.access import Caller, TheCaller, TheContext, why_over
from fleetcron.api.context import MOST_STREAMS, Context
from fleetcron.api.parameters import Cursor, Limit, RunId, cursor_of, from_cursor
from fleetcron.api.problems import Problem, not_found
from fleetcron.api.routing import needs, router
from fleetcron.api.runs import the_run
from fleetcron.model.access import Role
from fleetcron.store.attempts import LogPage, LogPiece
from fleetcron.views.logs import followed, piece_json

routes = router("runs")
Pieces: TypeAlias = AsyncGenerator[tuple[LogPage, LogPiece], None]
LOOK_EVERY_S = 5.0  # whether the key still holds; and proxies give up on a connection that says nothing
_RETRY_AFTER: Final = {"Retry-After": "5"}
_BUSY: Final = ("busy", "This node serves as many as it can")
Attempt = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="of this attempt; the latest unless given")]
_STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "events `log` (data: a piece, id: attempt.seq) and at the end one event `end`; or `refused` "
        "(data: code and detail) if the key or the session has ended meanwhile",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@routes.get("/runs/{run_id:number}/log", response_model=shapes.Log, summary="What a run printed", **needs(Role.VIEWER))
async def get_run_log(
    context: TheContext,
    caller: TheCaller,
    run_id: RunId,
    attempt: Attempt = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """In pieces, as they came; also while it runs."""
    await the_run(context, caller, run_id)
    after = from_cursor(cursor, int, int)
    wanted, seq = (attempt, -1) if after is None else (after[0], after[1])
    page = await context.store.past_attempts.log(run_id, wanted, after_seq=seq, limit=limit)
    if page is None:
        raise not_found(f"run {run_id}")
    if attempt is not None and attempt > (page.latest or 0):
        there = "none has begun" if page.latest is None else f"the latest is {page.latest}"
        raise not_found(f"attempt {attempt} of run {run_id}: {there}")
    return {
        "attempt": page.attempt,
        "pieces": [piece_json(page.attempt, piece) for piece in page.pieces],
        "ended": page.ended,
        "is_final": page.is_final,
        "next": cursor_of(page.attempt, page.pieces[-1].seq) if page.pieces else None,
    }


@routes.get(
    "/runs/{run_id:number}/log/stream",
    response_class=StreamingResponse,
    responses=_STREAM,
    summary="What a run prints from now on",
    **needs(Role.VIEWER),
)
async def stream_run_log(
    context: TheContext,
    caller: TheCaller,
    run_id: RunId,
    attempt: Attempt = None,
    last_event_id: Annotated[str | None, Header(description="where a stream that broke goes on")] = None,
) -> StreamingResponse:
    """Server-sent events from the beginning of the log, until the run is final; from attempt to attempt unless one is
    named. A key follows `api.streams` logs at once on each node (429 above that)."""
    await the_run(context, caller, run_id)
    begin, seq = _place(last_event_id) or (attempt, -1)
    _refuse_if_full(context, caller)
    leave = context.streams.take(caller.credential)
    pieces = followed(context.store, run_id, begin, follow=True, after_seq=seq, alone=attempt is not None)
    return _Stream(_events(context, caller, pieces, leave), leave)


class _Stream(StreamingResponse):
    """It has its place from before it begins, so that many at once are counted, and gives it back also if it never
    does: a generator that nobody has begun ends nothing."""

    def __init__(self, events: AsyncGenerator[str, None], leave: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


def _refuse_if_full(context: Context, caller: Caller) -> None:
    match context.streams.full(caller.credential):
        case "key":
            why = f"this key follows {context.config.streams} logs at once, which is all it may (api.streams)"
        case "tenant":
            why = f"the keys of this tenant follow {MOST_STREAMS // 4} logs at once, which is all they may"
        case "node":
            why = f"{MOST_STREAMS} logs are followed on this node, which is all it can: try again, or ask another node"
            raise Problem(503, why, headers=_RETRY_AFTER, kind=_BUSY)
        case None:
            return
    raise Problem(429, f"{why}: end one of them, or read page by page: GET /runs/ID/log", headers=_RETRY_AFTER)


def _place(last_event_id: str | None) -> tuple[int, int] | None:
    attempt, _, seq = (last_event_id or "").partition(".")
    if attempt.isascii() and attempt.isdigit() and seq.isascii() and seq.isdigit() and len(attempt + seq) < 18:
        return int(attempt), int(seq)
    return None


async def _events(
    context: Context, caller: Caller, pieces: Pieces, leave: Callable[[], None]
) -> AsyncGenerator[str, None]:
    loop = asyncio.get_running_loop()
    closing = asyncio.create_task(context.closing.wait())
    coming = asyncio.ensure_future(anext(pieces))
    looked_s = loop.time()
    try:
        yield "retry: 2000\n\n"
        while True:
            done, _ = await asyncio.wait({coming, closing}, timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
            if loop.time() - looked_s >= LOOK_EVERY_S:  # before anything more is told, also of a run that never rests
                if (why := await why_over(context, caller)) is not None:
                    yield f"event: refused\ndata: {json.dumps({'code': 'unauthenticated', 'detail': why})}\n\n"
                    return
                looked_s = loop.time()
            if coming in done:
                try:
                    page, piece = coming.result()
                except StopAsyncIteration:
                    yield "event: end\ndata: {}\n\n"
                    return
                told = json.dumps(piece_json(page.attempt, piece), ensure_ascii=False)
                yield f"id: {page.attempt}.{piece.seq}\nevent: log\ndata: {told}\n\n"
                coming = asyncio.ensure_future(anext(pieces))
            elif closing in done:
                return  # the reader comes back, to another server
            else:
                yield ": nothing new\n\n"
    finally:
        leave()
        for task in (coming, closing):
            task.cancel()
        await asyncio.gather(coming, closing, return_exceptions=True)
        await pieces.aclose()
