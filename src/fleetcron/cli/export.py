"""`fleetcron export`, also `jobs export`: jobs as the YAML that `fleetcron apply` reads."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.names import naming, split_there, the_job
from fleetcron.cli.when import json_option, print_json
from fleetcron.cli.yamltext import dumped
from fleetcron.model.definition import Definition
from fleetcron.model.rules import EveryEntry
from fleetcron.model.target import PythonTarget
from fleetcron.store.job_pages import JobFilter
from fleetcron.store.store import Store
from fleetcron.views.calendars import stored_calendars
from fleetcron.views.jobs import stated_json

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

_PAGE = 1000
_KEPT_STATES: Final = ("active", "paused")
_KEPT: Final = ("name", "type")
_RULES: Final = ("retry", "overlap", "misfire", "alerts", "retention")
_DEFAULTS: Final = Definition("-", (EveryEntry(1000),), PythonTarget("-:-")).as_document()


@click.command("export")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--managed-by", metavar="NAME", help="Only the jobs of this manager, such as app:shop.")
@click.option("--tenant", metavar="NAME", help="Only the jobs and calendars of a tenant.")
@click.option("--full", is_flag=True, help="Write every field, also those that have their default.")
@database_options
@json_option
def export(
    database: Database, names: tuple[str, ...], managed_by: str | None, tenant: str | None, full: bool, as_json: bool
) -> None:
    """Print jobs as YAML that `fleetcron apply` accepts and `fleetcron plan` shows as no change: those named, or all
    that are active or paused.

    Calendars that these jobs use come along; without names and --managed-by all of them. A document does not say that
    a job is paused.
    """
    if names and (managed_by or tenant):
        raise click.UsageError("Names say which jobs: leave out --managed-by and --tenant.")
    jobs, calendars = database.ask(
        lambda store: _of_store(store, names, JobFilter(tenant=tenant, managed_by=managed_by)),
        lambda client: _of_api(client, names, tenant, managed_by),
    )
    if names or managed_by is not None:
        used = {(job["definition"]["tenant"], use["name"]) for job in jobs for use in job["definition"]["calendars"]}
        calendars = [each for each in calendars if (each["tenant"], each["name"]) in used]
    document: dict[str, Any] = {}
    if calendars:
        document["calendars"] = [_without_nothing(each) for each in calendars]
    document["jobs"] = [job["definition"] if full else brief(job["definition"]) for job in jobs]
    if as_json:
        print_json(document)
        return
    for job in jobs:
        if job["state"] != "active":
            click.echo(f"# {job['definition']['tenant']}/{job['definition']['name']} is {job['state']}")
    click.echo(dumped(document), nl=False)


async def _of_store(store: Store, names: Iterable[str], wanted: JobFilter) -> tuple[Sequence[Doc], Sequence[Doc]]:
    jobs = [stated_json((await the_job(store, name)).job) for name in dict.fromkeys(names)] or await _all(store, wanted)
    calendars = [each for each in await stored_calendars(store) if wanted.tenant in (None, each.tenant)]
    return jobs, [each.as_document() for each in calendars]


async def _all(store: Store, wanted: JobFilter) -> list[Doc]:
    jobs: list[Doc] = []
    while page := await store.jobs.list(wanted, _PAGE):
        jobs += [stated_json(line.job) for line in page if line.job.state in _KEPT_STATES]
        last = page[-1].job.definition
        wanted = replace(wanted, after=(last.tenant, last.name))
    return jobs


def _of_api(
    client: "Client", names: Iterable[str], tenant: str | None, managed_by: str | None
) -> tuple[Sequence[Doc], Sequence[Doc]]:
    jobs: list[Doc] = []
    for name in dict.fromkeys(names):
        owner, own = split_there(name)
        with naming(client, name):
            jobs.append(client.jobs.get(own, tenant=owner))
    every = client.jobs.definitions(tenant=tenant, managed_by=managed_by)
    found = jobs or [each for each in every if each["state"] in _KEPT_STATES]
    return found, client.calendars.list(tenant=tenant)["calendars"]


def brief(definition: Mapping[str, Any]) -> dict[str, Any]:
    """The document without what has its default: reading it gives the same definition."""
    whole = dict(definition)
    derived = whole.pop("derived", ())
    kept = {name: value for name, value in whole.items() if name in _KEPT or value != _DEFAULTS[name]}
    for name in derived:
        del kept[name]
    for rule in _RULES:
        if rule in kept:
            kept[rule] = {key: value for key, value in kept[rule].items() if value != _DEFAULTS[rule][key]}
    entries = [_entry(entry) for entry in whole["schedule"]]
    kept["schedule"] = entries[0] if len(entries) == 1 else entries
    kept["run"] = {
        key: _without_nothing(value) if key in ("http", "publish") else value
        for key, value in _without_nothing(whole["run"]).items()
    }
    return kept


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Without the policies that follow from the expression, and without `month_end: skip`."""
    left_out = {*entry.get("derived", ()), "derived"}
    return {
        key: value
        for key, value in entry.items()
        if key not in left_out and value is not None and (key, value) != ("month_end", "skip")
    }


def _without_nothing(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if value is not None and value not in ([], {}, False)}
