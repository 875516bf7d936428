"""Jobs by name on the command line: `nightly-report`, or `acme/nightly-report` for another tenant than `default`."""

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from fleetcron.errors import FleetcronError, RefusedError
from fleetcron.model.tenant import DEFAULT_TENANT
from fleetcron.store.job_pages import JobFilter
from fleetcron.store.jobs import JobLine
from fleetcron.store.store import Store

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

_LOOKED_AT = 1000

MOST_OF_A_NAME = 200


def _who(_context: click.Context, _option: click.Parameter, value: str) -> str:
    """A name that every database can keep: bytes that are no text are shown as such."""
    name = value.encode(errors="replace").decode().replace("\0", "?").strip()
    if not name or len(name) > MOST_OF_A_NAME:
        raise click.BadParameter(f"write a name of 1 to {MOST_OF_A_NAME} characters")
    return name


by_option = click.option(
    "--by",
    metavar="NAME",
    default=lambda: user(),
    callback=_who,
    help="Who the history says did it. [default: your user name]",
)


def split(text: str) -> tuple[str, str]:
    """(tenant, name)."""
    tenant, slash, name = text.strip().partition("/")
    return (tenant, name) if slash else (DEFAULT_TENANT, tenant)


def split_there(text: str) -> tuple[str | None, str]:
    """The same for an API: who names no tenant means that of the key, or `default` if it is one of all tenants."""
    tenant, slash, name = text.strip().partition("/")
    return (tenant, name) if slash else (None, tenant)


def user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number without a name
        return f"uid-{os.getuid()}"


async def the_job(store: Store, text: str) -> JobLine:
    """The job that is meant, or a RefusedError with the nearest that exist."""
    tenant, name = split(text)
    found = await store.jobs.list(JobFilter(tenant=tenant, name=name), 1)
    if not found:
        raise await no_such_job(store, text)
    return found[0]


async def no_such_job(store: Store, text: str) -> RefusedError:
    tenant, name = split(text)
    elsewhere = [_full(line) for line in await store.jobs.list(JobFilter(name=name), 3)]
    known = [_full(line) for line in await store.jobs.list(JobFilter(tenant=tenant), _LOOKED_AT)]
    return _no_such_job(tenant, name, elsewhere, known)


@contextmanager
def naming(client: "Client", text: str | None) -> Iterator[None]:
    """What an API does not find here is this job: then the nearest names are told, as they are of a database."""
    from fleetcron.client.errors import NotFound

    try:
        yield
    except NotFound as error:
        if text is None:
            raise
        tenant, name = split_there(text)
        try:
            tenant = tenant or client.me()["tenant"] or DEFAULT_TENANT
            alike = [each for each in client.jobs.list(text=name, limit=_LOOKED_AT) if each["name"] == name]
            known = [f"{tenant}/{each['name']}" for each in client.jobs.list(tenant=tenant, limit=_LOOKED_AT)]
        except FleetcronError:  # the tenant is not one of this key, or it may only ping
            raise error from None
        elsewhere = [f"{each['tenant']}/{each['name']}" for each in alike[:3]]
        raise _no_such_job(tenant, name, elsewhere, known) from None


def known_job(client: "Client", text: str) -> None:
    """Refused, if there never was such a job."""
    tenant, name = split_there(text)
    with naming(client, text):
        client.jobs.revisions(name, tenant=tenant, limit=1)


def _no_such_job(tenant: str, name: str, elsewhere: list[str], known: list[str]) -> RefusedError:
    mates = [each.removeprefix(f"{tenant}/") for each in known if each.startswith(f"{tenant}/")]
    near = elsewhere or [f"{tenant}/{each}" for each in get_close_matches(name, mates, n=3)]
    hint = f"did you mean {' or '.join(near)}?" if near else "`fleetcron jobs` lists them all"
    return RefusedError(f"there is no job {name} of tenant {tenant}; {hint}")


def _full(line: JobLine) -> str:
    return line.job.definition.seed
