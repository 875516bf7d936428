"""`fleetcron dead`: the list of dead letters, and the commands about them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fleetcron.cli.asking import Doc, paged
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.lazy import LazyGroup, Table
from fleetcron.cli.moments import as_json as as_json_instant
from fleetcron.cli.moments import distance, instant_ms, ms_of, now_ms, shown
from fleetcron.cli.names import known_job, no_such_job, split, split_there
from fleetcron.cli.tables import limit_option, printable, say_more, shortened, table
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.store.steering import DeadFilter
from fleetcron.store.store import Store
from fleetcron.views.cursors import cursor_of
from fleetcron.views.past import dead_json

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

COMMANDS: Table = {
    "show": ("fleetcron.cli.run:show", "Show one with all attempts, like fleetcron runs show."),
    "replay": ("fleetcron.cli.dead_steering:replay", "Open dead runs again: some by number, or all that are alike."),
    "discard": ("fleetcron.cli.dead_steering:discard", "Take dead runs from the list, with a reason."),
}
Command = TypeVar("Command", bound=Callable[..., Any])
_HEADS = ("RUN", "JOB", "SCHEDULED FOR", "DIED", "ATTEMPTS", "ERROR")
_LONGEST = 80  # characters of an error in the list


@dataclass(frozen=True, slots=True)
class Which:
    """Which dead letters, as the command line says."""

    job: str | None
    tenant: str | None
    type: str | None
    error: str | None
    since_ms: int | None

    @property
    def is_for_all(self) -> bool:
        return (self.job, self.tenant, self.type, self.error, self.since_ms) == (None,) * 5

    async def filter(self, store: Store) -> DeadFilter:
        """A job that never existed is refused, with the nearest names."""
        tenant, name = self._named
        if tenant is not None and name is not None and not await store.jobs.named(tenant, name, 1):
            raise await no_such_job(store, f"{tenant}/{name}")
        return DeadFilter(tenant, name, self.type, self.error, self.since_ms)

    def query(self, client: "Client") -> dict[str, Any]:
        """The same for an API."""
        tenant, name = (self.tenant, None) if self.job is None else split_there(self._full)
        if name is not None:
            known_job(client, self._full)
        since = as_json_instant(self.since_ms)
        return {"tenant": tenant, "job": name, "type": self.type, "error": self.error, "since": since}

    @property
    def _named(self) -> tuple[str | None, str | None]:
        return (self.tenant, None) if self.job is None else split(self._full)

    @property
    def _full(self) -> str:
        job = str(self.job)
        return job if "/" in job or self.tenant is None else f"{self.tenant}/{job}"


_OPTIONS = (
    click.option("--job", "--name", "job", metavar="NAME", help="Only this job: NAME or TENANT/NAME."),
    click.option("--tenant", metavar="NAME", help="Only the jobs of a tenant."),
    click.option("--type", "kind", metavar="TYPE", help="Only jobs of this type."),
    click.option("--error", metavar="CODE", help="Only runs whose last error has this code."),
    click.option("--since", metavar="T", help="Only runs that died from this instant on; 2h: two hours ago."),
)


def which_options(function: Command) -> Command:
    """Add the options; the command gets them as one `which`."""

    @wraps(function)
    def command(
        job: str | None, tenant: str | None, kind: str | None, error: str | None, since: str | None, **values: Any
    ) -> Any:
        return function(which=Which(job, tenant, kind, error, instant_ms(since, "--since")), **values)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command  # type: ignore[return-value]


@click.group("dead", cls=LazyGroup, table=COMMANDS, invoke_without_command=True)
@watchable
@which_options
@click.option("--before", metavar="NUMBER", type=int, help="The page after the one that ended with this number.")
@limit_option
@database_options
@json_option
@click.pass_context
def command(
    context: click.Context, database: Database, which: Which, before: int | None, limit: int, as_json: bool
) -> None:
    """List dead letters, the newest first: runs that have failed for good, with their last error.

    One of them with all attempts: fleetcron dead show RUN. To choose by job: --job NAME.
    """
    if context.invoked_subcommand is not None:
        return

    async def of_store(store: Store) -> tuple[Sequence[Doc], bool, int]:
        found = await store.steering.dead(await which.filter(store), limit=limit + 1, before_id=before)
        now = (await store.jobs.find(())).now_ms
        return [dead_json(each) for each in found[:limit]], len(found) > limit, now

    def of_api(client: "Client") -> tuple[Sequence[Doc], bool, int]:
        cursor = None if before is None else cursor_of(before)
        found, more, _ = paged(client.dead.page, "dead", limit, cursor, **which.query(client))
        return found, more, now_ms()

    letters, more, now = database.ask(of_store, of_api)
    last = letters[-1]["run_id"] if more else None
    if as_json:
        print_json({"dead": letters, "before": last})
    elif letters:
        click.echo(table(_HEADS, [_row(each, now) for each in letters]))
        if last is not None:
            say_more(len(letters), f"--before {last}")
        click.echo("One with all attempts: fleetcron dead show RUN. Then: dead replay RUN, or dead discard RUN.")
    elif which.is_for_all and before is None:
        click.echo("No dead letters: no run has failed for good, or all were replayed or discarded.")
    else:
        click.echo("No dead letter is like that. Without these options, fleetcron dead lists them all.")


def _row(each: Doc, now: int) -> list[str]:
    return [
        str(each["run_id"]),
        f"{each['tenant']}/{each['name']}",
        shown(each["scheduled_for"]),
        distance(ms_of(each["died_at"]), now),
        str(each["attempt"]),
        _error(each["error"]),
    ]


def _error(error: Doc) -> str:
    text = printable(f"{error['code'] or '-'}: {error['text'] or ''}".removesuffix(": "))
    return shortened(text, _LONGEST)
