"""The options that say which part of the past is meant, shared by the commands that list it; and one page of it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Generic, TypeVar

import click

from fleetcron.cli.moments import instant_ms, zone_of
from fleetcron.cli.names import no_such_job, split
from fleetcron.cli.tables import limit_option
from fleetcron.clock import utc_now
from fleetcron.store.history import Span
from fleetcron.store.store import Store
from fleetcron.times.instants import to_ms
from fleetcron.times.zone import Zone

Line = TypeVar("Line")
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Page(Generic[Line]):
    """`zone` is the zone of the job that was asked for, if it is not UTC."""

    lines: Sequence[Line]
    more: bool
    now_ms: int
    zone: Zone | None

    def before(self, number: Callable[[Line], int]) -> int | None:
        """The number that begins the next page, if there is one."""
        return number(self.lines[-1]) if self.more else None


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

    async def page(self, store: Store, read: Callable[[Span, int], Awaitable[Sequence[Line]]]) -> Page[Line]:
        """One page, and whether there is another. A job that never existed is refused, with the nearest names."""
        span = self.span
        lines = await read(span, self.limit + 1)
        zone = None
        if span.tenant is not None and span.name is not None:
            named = await store.jobs.named(span.tenant, span.name, 1)
            if not named:
                raise await no_such_job(store, str(self.job))
            zone = zone_of(named[0].definition)
        now_ms = (await store.jobs.find(())).now_ms
        shown = zone if zone is not None and zone.name != "UTC" else None
        return Page(lines[: self.limit], len(lines) > self.limit, now_ms, shown)


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
