"""A ping on its way to the store. Apart from `ping.py`: a command is not to wait until all of this is imported."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from fleetcron.cli.connection import Database, opened
from fleetcron.cli.main import exit_code_of, one_line
from fleetcron.cli.names import no_such_job, split
from fleetcron.config import Config
from fleetcron.errors import FleetcronError, StoreUnavailable
from fleetcron.model.ping import Told
from fleetcron.store.pings import Noted
from fleetcron.store.written import Ok, Refused
from fleetcron.views.shadow import warning_of


def send(
    name: str,
    told: Told,
    elapsed_ms: Callable[[], int],
    timeout_s: float,
    database: str | None,
    config_file: str | None,
) -> tuple[str | None, int]:
    """What is to be said about it, if anything, and the exit code."""
    try:
        config = Database(database, config_file).config()
        noted = asyncio.run(asyncio.wait_for(_send(config, name, told, elapsed_ms), timeout_s))
    except TimeoutError:
        return f"lost: the store has not answered within {timeout_s:g} s", 3
    except (FleetcronError, OSError) as error:
        return f"lost: {one_line(error)}", exit_code_of(error)
    warning = warning_of(noted)
    return warning, 0 if warning is None else 1


async def _send(config: Config, name: str, told: Told, elapsed_ms: Callable[[], int]) -> Noted:
    tenant, own = split(name)
    async with opened(config) as store:
        for _ in range(3):
            late = replace(told, ago_ms=told.ago_ms + elapsed_ms())
            match await store.pings.note(tenant, own, late):
                case Ok(noted):
                    return noted
                case Refused():
                    raise await no_such_job(store, name)
    raise StoreUnavailable("the reply was lost: it may have been noted", hint="nothing is noted twice")
