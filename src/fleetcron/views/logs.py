"""What attempts printed, and what they print from now on."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

from fleetcron.store.attempts import LogPage, LogPiece
from fleetcron.store.store import Store
from fleetcron.views.instants import as_json as instant_json

_EVERY_S: Final = 0.5


async def followed(
    store: Store,
    run_id: int,
    attempt: int | None,
    *,
    follow: bool,
    after_seq: int = -1,
    alone: bool | None = None,
) -> AsyncGenerator[tuple[LogPage, LogPiece], None]:
    """From the first piece on, or after one of them. Unless an attempt was named, or is `alone` of interest, following
    goes on with the next one. Nothing if there is no such run."""
    only = attempt is not None if alone is None else alone
    seq = after_seq
    over = False
    while True:
        page = await store.past_attempts.log(run_id, attempt, after_seq=seq)
        if page is None:
            return
        for piece in page.pieces:
            yield page, piece
        if page.pieces:
            attempt, seq = page.attempt, page.pieces[-1].seq
            continue
        if not follow:
            return
        if page.ended and not only and page.latest is not None and page.latest > page.attempt:
            attempt, seq, over = page.attempt + 1, -1, False
            continue
        if over and page.ended and (page.is_final or only):
            return
        over = page.ended  # what an attempt printed last may come a moment after its end: one more look
        await asyncio.sleep(_EVERY_S)


def piece_json(attempt: int, piece: LogPiece) -> dict[str, Any]:
    return {
        "attempt": attempt,
        "seq": piece.seq,
        "at": instant_json(piece.at_ms),
        "text": piece.text,
        "truncated": piece.truncated,
    }
