"""`fleetcron completion`: the lines that teach a shell to complete our commands, options and the names of jobs."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import get_completion_class

from fleetcron.cli.lazy import COMPLETE

if TYPE_CHECKING:
    from fleetcron.cli.connection import Database

_INSTALL: Final = {
    "bash": 'eval "$(fleetcron completion bash)"       # into ~/.bashrc',
    "zsh": 'eval "$(fleetcron completion zsh)"        # into ~/.zshrc, after compinit',
    "fish": "fleetcron completion fish > ~/.config/fish/completions/fleetcron.fish",
}
_MOST: Final = 50
_PATIENCE_S: Final = 1.0  # of somebody who has pressed Tab


@click.command("completion", epilog="\b\n" + "\n".join(_INSTALL.values()))
@click.argument("shell", type=click.Choice(list(_INSTALL)))
def command(shell: str) -> None:
    """Print what SHELL needs to complete commands, options and the names of jobs."""
    found = get_completion_class(shell)
    assert found is not None
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "fleetcron", COMPLETE).source())


def job_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The jobs whose names begin so: `report`, or `acme/report`. Of a database that is not there at once, none: whoever
    presses Tab wants no message."""
    del param
    try:
        return _names(ctx, incomplete)
    except BaseException:
        return []


def _names(ctx: click.Context, incomplete: str) -> list[str]:
    from fleetcron.cli.connection import Database

    tenant, slash, begun = incomplete.rpartition("/")
    database = Database(_said(ctx, "database"), _said(ctx, "config_file"), _said(ctx, "api"))
    ask = _of_store if database.there is None else _of_api
    found = ask(database, tenant or None, begun.lower() or None)
    shown = [f"{tenant}/{name}" if slash or tenant != "default" else name for tenant, name in found]
    return [name for name in shown if name.startswith(incomplete)]


def _of_store(database: "Database", tenant: str | None, text: str | None) -> list[tuple[str, str]]:
    import asyncio

    from fleetcron.cli.connection import opened
    from fleetcron.store.jobs import JobFilter

    config = database.config()
    config = replace(config, store=replace(config.store, deadline_s=_PATIENCE_S))

    async def main() -> list[tuple[str, str]]:
        async with asyncio.timeout(_PATIENCE_S), opened(config) as store:
            found = await store.jobs.list(JobFilter(tenant=tenant, text=text), _MOST)
        return [(line.job.definition.tenant, line.job.definition.name) for line in found]

    return asyncio.run(main())


def _of_api(database: "Database", tenant: str | None, text: str | None) -> list[tuple[str, str]]:
    from fleetcron.client.blocking import Client

    with Client(database.there, timeout=_PATIENCE_S, tries=1, patience=_PATIENCE_S) as client:
        found = client.jobs.page(tenant=tenant, text=text, limit=_MOST)
    return [(each["tenant"], each["name"]) for each in found["jobs"]]


def _said(ctx: click.Context | None, name: str) -> Any:
    while ctx is not None:
        if found := ctx.params.get(name):
            return found
        ctx = ctx.parent
    return None
