"""What `apply` and `plan` are asked to bring about: the jobs of files and of an app, and what becomes of those that
vanished from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from fleetcron.app.application import PRUNES, Fleetcron
from fleetcron.applying.apply import Report, apply, compared, mark_unable, standings
from fleetcron.cli.apps import app_of, app_option
from fleetcron.cli.export import brief
from fleetcron.cli.files import Loaded, files_option, load, read
from fleetcron.cli.names import MOST_OF_A_NAME
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.job import Job
from fleetcron.model.reading import Documents, read_calendar
from fleetcron.scheduler.sync import Prune, vanished
from fleetcron.store.store import Store
from fleetcron.views.calendars import stored_calendars

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

Body: TypeAlias = dict[str, Any]  # of POST /apply and POST /plan
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Wished:
    """`managed_by` and `prune` are about the files; an app is its own manager, and `prune` is about it too."""

    files: Loaded
    app: Fleetcron | None = None
    app_name: str | None = None
    managed_by: str | None = None
    prune: Prune | None = None

    def check(self) -> Documents:
        """Without the database: a mistake is told even if nobody answers there."""
        documents = read(self.files, managed_by=self.managed_by)
        if self.app is not None:
            self.app.definitions()
        return documents

    async def documents(self, store: Store, checked: Documents) -> Documents:
        """Checked again with the calendars that the fleet has, if it has some."""
        return self._again(checked, await stored_calendars(store))

    async def deleted(self, store: Store) -> Sequence[Job]:
        """The jobs of the app that are no longer in its code, if these are deleted. Those that are paused instead come
        back with the code: nobody has to be asked."""
        if self.app is None or (self.prune or self.app.prune) != "delete":
            return ()
        return await vanished(store, {(each.tenant, each.name) for each in self.app.definitions()}, self.app.managed_by)

    async def carry_out(
        self,
        store: Store,
        documents: Documents,
        gone: Sequence[Job],
        *,
        by: str,
        shards: int,
        progress: Callable[[int], None],
    ) -> Report:
        report = await apply(
            store,
            documents,
            actor=by,
            shards=shards,
            progress=progress,
            managed_by=self.managed_by,
            gone=gone,
            prune=self.prune or "keep",
        )
        if self.app is not None:
            before = await standings(store, self.app.definitions())
            done = await self.app.sync(store, prune=self.prune, by=by, shards=shards)
            report.jobs += [compared(before, applied) for applied in done]
        await mark_unable(store, report)
        return report

    def bodies(self, client: "Client", checked: Documents) -> Sequence[Body]:
        """The same for an API: what the files say, and after it what the app says."""
        known = [read_calendar(each) for each in client.calendars.list()["calendars"]]
        documents = self._again(checked, known)
        found: list[Body] = []
        if self.files.sources:
            calendars = [each.as_document() for each in documents.calendars]
            jobs = [_sent(each) for each in documents.jobs]
            found.append({"calendars": calendars, "jobs": jobs, "managed_by": self.managed_by, "prune": self.prune})
        if self.app is not None:
            jobs = [_sent(each) for each in self.app.definitions()]
            prune = self.prune or self.app.prune
            found.append({"calendars": [], "jobs": jobs, "managed_by": self.app.managed_by, "prune": prune})
        return found

    def _again(self, checked: Documents, known: Sequence[CalendarDocument]) -> Documents:
        return read(self.files, known, self.managed_by) if known else checked


def _sent(definition: Definition) -> Body:
    """As short as a file has it, which is a fifth; but the tenant is said, for a key may have another one."""
    return {**brief(definition.as_document()), "tenant": definition.tenant}


def wished_options(function: Command) -> Command:
    """Add the files, --app, --managed-by and --prune; the command gets them as one `wished`."""

    @wraps(function)
    def command(
        more: tuple[str, ...],
        files: tuple[str, ...],
        app_name: str | None,
        managed_by: str | None,
        prune: Prune | None,
        **values: Any,
    ) -> Any:
        if not files and not more and app_name is None:
            name = click.get_current_context().info_name
            raise click.UsageError(f"Which file? For example: fleetcron {name} -f jobs.yaml")
        if prune is not None and app_name is None and managed_by is None:
            raise click.UsageError(
                "--prune is about the jobs of one source: add --managed-by NAME for files, or --app MODULE:NAME"
            )
        app = app_of(app_name)
        return function(wished=Wished(load((*files, *more)), app, app_name, managed_by, prune), **values)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command  # type: ignore[return-value]


def _manager(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    name = value.strip()
    if not name or len(name) > MOST_OF_A_NAME or not name.isprintable():
        raise click.BadParameter(f"write a name of 1 to {MOST_OF_A_NAME} characters, such as shop-jobs")
    if name.startswith("app:"):
        raise click.BadParameter("names that begin with app: belong to Python apps, which --app applies")
    return name


_OPTIONS = (
    click.argument("more", nargs=-1, metavar="[FILE]..."),
    files_option,
    app_option,
    click.option(
        "--managed-by",
        metavar="NAME",
        callback=_manager,
        help="Who keeps these files: their jobs belong to this name, and jobs of another are left alone.",
    ),
    click.option(
        "--prune",
        is_flag=False,
        flag_value="pause",
        type=click.Choice(PRUNES),
        help="What becomes of jobs of this manager, or of this app, that are gone: pause (also without a value), "
        "delete or keep. [default: keep for files; for apps what the app says, mostly pause]",
    ),
)
