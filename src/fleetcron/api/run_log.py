"""What a run printed, page by page; and what it prints from now on, as server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

from fastapi import Header, Query
from fastapi.responses import StreamingResponse

from fleetcron.api import run_shapes as shapes
from fleetcron.api.access import TheCaller, TheContext
from fleetcron.api.context import Context
from fleetcron.api.parameters import Cursor, Limit, RunId, cursor_of, from_cursor
from fleetcron.api.problems import Problem, not_found
from fleetcron.api.routing import needs, router
from fleetcron.api.runs import the_run
from fleetcron.model.access import Role
from fleetcron.views.logs import followed, piece_json

routes = router("runs")
MOST_STREAMS: Final = 200
_SILENCE_S: Final = 15.0  # proxies give up on a connection that says nothing
Attempt = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="of this attempt; the latest unless given")]
_EVENT: Final = {
    "type": "object",
    "description": "one of the events",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}, "id": {"type": "string"}},
}
_STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "events `log` (data: a piece, id: attempt.seq) and at the end one event `end`",
        # the whole stream is text; tools that know more than version 3.1 look at each event
        "content": {"text/event-stream": {"schema": {"type": "string"}, "itemSchema": _EVENT}},
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
    named."""
    await the_run(context, caller, run_id)
    begin, seq = _place(last_event_id) or (attempt, -1)
    if context.streams >= MOST_STREAMS:
        raise Problem(503, "too many streams are open", headers={"Retry-After": "5"})
    events = _events(context, run_id, begin, seq, alone=attempt is not None)
    return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def _place(last_event_id: str | None) -> tuple[int, int] | None:
    attempt, _, seq = (last_event_id or "").partition(".")
    if attempt.isascii() and attempt.isdigit() and seq.isascii() and seq.isdigit() and len(attempt + seq) < 18:
        return int(attempt), int(seq)
    return None


async def _events(context: Context, run_id: int, attempt: int | None, seq: int, *, alone: bool) -> AsyncIterator[str]:
    context.streams += 1
    pieces = followed(context.store, run_id, attempt, follow=True, after_seq=seq, alone=alone)
    closing = asyncio.create_task(context.closing.wait())
    coming = asyncio.ensure_future(anext(pieces))
    try:
        yield "retry: 2000\n\n"
        while True:
            done, _ = await asyncio.wait({coming, closing}, timeout=_SILENCE_S, return_when=asyncio.FIRST_COMPLETED)
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
        context.streams -= 1
        for task in (coming, closing):
            task.cancel()
        await asyncio.gather(coming, closing, return_exceptions=True)
        await pieces.aclose()
