"""`fleetcron completion`: the lines that teach a shell to complete our commands, options and the names of jobs."""

from dataclasses import replace
from typing import Any, Final

import click
from click.shell_completion import get_completion_class

from fleetcron.cli.lazy import COMPLETE

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
    import asyncio

    from fleetcron.cli.connection import Database, opened
    from fleetcron.store.jobs import JobFilter
    from fleetcron.store.store import Store

    tenant, slash, begun = incomplete.rpartition("/")
    wanted = JobFilter(tenant=tenant or None, text=begun.lower() or None)

    async def names(store: Store) -> list[str]:
        found = [line.job.definition for line in await store.jobs.list(wanted, _MOST)]
        shown = [each.seed if slash or each.tenant != "default" else each.name for each in found]
        return [name for name in shown if name.startswith(incomplete)]

    database = Database(_said(ctx, "database"), _said(ctx, "config_file"))
    config = database.config()
    config = replace(config, store=replace(config.store, deadline_s=_PATIENCE_S))

    async def main() -> list[str]:
        async with asyncio.timeout(_PATIENCE_S), opened(config) as store:
            return await names(store)

    return asyncio.run(main())


def _said(ctx: click.Context | None, name: str) -> Any:
    while ctx is not None:
        if found := ctx.params.get(name):
            return found
        ctx = ctx.parent
    return None
