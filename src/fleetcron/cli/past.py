"""The options that say which part of the past is meant, shared by the commands that list it; and one page of it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fleetcron.cli.asking import Doc, paged
from fleetcron.cli.moments import as_json, instant_ms, now_ms, zone_of
from fleetcron.cli.names import known_job, no_such_job, split, split_there
from fleetcron.cli.tables import limit_option
from fleetcron.clock import utc_now
from fleetcron.store.history import Span
from fleetcron.store.store import Store
from fleetcron.times import zones
from fleetcron.times.instants import to_ms
from fleetcron.times.zone import Zone
from fleetcron.views.cursors import cursor_of
from fleetcron.views.instants import zone_name

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

Line = TypeVar("Line")
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Page:
    """Documents. `zone` is the zone of the job that was asked for, if it is not UTC; `more` is what else was said."""

    lines: Sequence[Doc]
    is_last: bool
    now_ms: int
    zone: Zone | None
    more: Doc = field(default_factory=dict)

    def before(self, number: str) -> int | None:
        """The number that begins the next page, if there is one."""
        return None if self.is_last else int(self.lines[-1][number])


@dataclass(frozen=True, slots=True)
class Asked:
    job: str | None
    tenant: str | None
    from_ms: int | None
    to_ms: int | None
    before: int | None
    limit: int

    @property
    def is_for_all(self) -> bool:
        return (self.job, self.tenant, self.from_ms, self.to_ms, self.before) == (None,) * 5

    @property
    def looks_ahead(self) -> bool:
        """Whether somebody asks for what is to come."""
        return self.to_ms is not None or (self.from_ms or 0) > to_ms(utc_now())

    @property
    def span(self) -> Span:
        tenant, name = (self.tenant, None) if self.job is None else split(self.job)
        return Span(tenant, name, self.from_ms, self.to_ms, self.before)

    async def of_store(
        self, store: Store, read: Callable[[Span, int], Awaitable[Sequence[Line]]], document: Callable[[Line, int], Doc]
    ) -> Page:
        """One page, and whether there is another. A job that never existed is refused, with the nearest names."""
        span = self.span
        lines = await read(span, self.limit + 1)
        zone = None
        if span.tenant is not None and span.name is not None:
            named = await store.jobs.named(span.tenant, span.name, 1)
            if not named:
                raise await no_such_job(store, str(self.job))
            zone = zone_of(named[0].definition)
        now = (await store.jobs.find(())).now_ms
        told = [document(line, now) for line in lines[: self.limit]]
        return Page(told, len(lines) <= self.limit, now, _shown(zone))

    def of_api(self, client: "Client", page: Callable[..., Any], key: str, **query: Any) -> Page:
        """The same over an API; of a job that is deleted it does not say the zone."""
        zone, (tenant, name) = None, (self.tenant, None) if self.job is None else split_there(self.job)
        if name is not None:
            from fleetcron.client.errors import NotFound

            try:
                zone = zones.zone(zone_name(client.jobs.get(name, tenant=tenant)["definition"]))
            except NotFound:
                known_job(client, str(self.job))
        query |= {"tenant": tenant, "job": name}
        query |= {key: as_json(ms) for key, ms in (("since", self.from_ms), ("until", self.to_ms)) if ms is not None}
        cursor = None if self.before is None else cursor_of(self.before)
        lines, more, first = paged(page, key, self.limit, cursor, **query)
        return Page(lines, not more, now_ms(), _shown(zone), first)


def _shown(zone: Zone | None) -> Zone | None:
    return zone if zone is not None and zone.name != "UTC" else None


_OPTIONS = (
    click.option("--job", metavar="NAME", help="Only this job: NAME or TENANT/NAME."),
    click.option("--tenant", metavar="NAME", help="Only the jobs of a tenant."),
    click.option("--from", "since", metavar="T", help="Ticks from this instant on; 2h means two hours ago."),
    click.option("--to", "until", metavar="T", help="Ticks before this instant."),
    click.option("--before", metavar="NUMBER", type=int, help="The page after the one that ended with this number."),
    limit_option,
)


def asked_options(function: Command) -> Command:
    """Add the options; the command gets them as one `asked`."""

    @wraps(function)
    def command(
        job: str | None,
        tenant: str | None,
        since: str | None,
        until: str | None,
        before: int | None,
        limit: int,
        **values: Any,
    ) -> Any:
        asked = Asked(job, tenant, instant_ms(since, "--from"), instant_ms(until, "--to"), before, limit)
        return function(asked=asked, **values)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command  # type: ignore[return-value]
