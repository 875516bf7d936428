"""A verb of the store until its answer is known. Every verb may be repeated, so a lost reply is no reason to guess."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from fleetcron.errors import RefusedError, StoreUnavailable
from fleetcron.store.written import Ok, Refused, Unknown, Written

T = TypeVar("T")
_TRIES = 3


async def answer(verb: Callable[[], Awaitable[Written[T]]]) -> T:
    """What it says; a RefusedError if it was refused."""
    why = ""
    for _ in range(_TRIES):
        match await verb():
            case Ok(value):
                return value
            case Refused(reason):
                raise RefusedError(reason)
            case Unknown(why):
                pass
    raise StoreUnavailable(
        f"the reply was lost ({why}): it may have been done", hint="try again; nothing is done twice"
    )
