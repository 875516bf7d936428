"""A ping on its way to the store or the API. Apart from `ping.py`: a command is not to wait for all these imports."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from fleetcron.cli.connection import Database, opened
from fleetcron.cli.main import exit_code_of, one_line
from fleetcron.cli.names import naming, no_such_job, split, split_there
from fleetcron.config import Config
from fleetcron.errors import FleetcronError, StoreUnavailable
from fleetcron.model.ping import Told
from fleetcron.store.written import Ok, Refused
from fleetcron.views.shadow import warned

_TRIES: Final = 2  # an API that is away is no reason to keep a line of a crontab


def send(
    name: str,
    told: Told,
    elapsed_ms: Callable[[], int],
    timeout_s: float,
    database: str | None,
    config_file: str | None,
    api: str | None,
) -> tuple[str | None, int]:
    """What is to be said about it, if anything, and the exit code."""
    try:
        if api is None:
            config = Database(database, config_file).config()
            warning = asyncio.run(asyncio.wait_for(_to_store(config, name, told, elapsed_ms), timeout_s))
        else:
            warning = _to_api(api, name, told, timeout_s)
    except TimeoutError:
        return f"lost: the store has not answered within {timeout_s:g} s", 3
    except (FleetcronError, OSError) as error:
        return f"lost: {one_line(error)}", exit_code_of(error)
    return warning, 0 if warning is None else 1


def _to_api(api: str, name: str, told: Told, timeout_s: float) -> str | None:
    """The key of a crontab may well do nothing but ping: then nobody tells it which names are near."""
    from fleetcron.client.blocking import Client  # who tells a database does without it

    tenant, own = split_there(name)
    took = None if told.took_ms is None else f"{max(1, told.took_ms)}ms"  # there is no duration of 0
    with Client(api, timeout=timeout_s, tries=_TRIES, patience=timeout_s) as client, naming(client, name):
        noted = client.shadow.ping(
            own,
            event=told.event,
            id=told.ping_id,
            exit_code=told.exit_code,
            duration=took,
            host=told.host,
            tenant=tenant,
        )
    return noted["warning"]


async def _to_store(config: Config, name: str, told: Told, elapsed_ms: Callable[[], int]) -> str | None:
    tenant, own = split(name)
    async with opened(config) as store:
        for _ in range(3):
            late = replace(told, ago_ms=told.ago_ms + elapsed_ms())
            match await store.pings.note(tenant, own, late):
                case Ok(noted):
                    return await warned(store, tenant, own, noted)
                case Refused():
                    raise await no_such_job(store, name)
    raise StoreUnavailable("the reply was lost: it may have been noted", hint="nothing is noted twice")
