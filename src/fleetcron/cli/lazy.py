"""A group of commands whose modules are imported only when they are called, so that every command starts fast."""

import os
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

from fleetcron.cli.tables import printable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMPLETE = "_FLEETCRON_COMPLETE"  # set by the shell while it asks what may come next
Table = Mapping[str, tuple[str, str]]  # name -> (module, or module:attribute; one line for --help)
_ABOUT_JOBS: Final = ("show", "steering", "trigger", "backfill", "export", "why")  # whose NAME is a job


class LazyGroup(click.Group):
    def __init__(self, *arguments: Any, table: Table, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self._table:
            return None
        module, _, attribute = self._table[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute or "command")
        if COMPLETE in os.environ:
            _offer_jobs(command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """As click does it, but without importing every command for its help."""
        from click.shell_completion import CompletionItem

        known = [(name, text) for name, (_, text) in self._table.items() if name.startswith(incomplete)]
        found = [CompletionItem(name, help=text) for name, text in known]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        # the help of each command stands here too, so that listing them imports none of them
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._table.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.possibilities:
                raise
            where = f"Options stand behind the command: {ctx.command_path} COMMAND {error.option_name} …"
            raise click.UsageError(f"{error.format_message()} {where}", ctx) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self._table:
            from difflib import get_close_matches

            near = get_close_matches(args[0], self._table, n=1)
            hint = f" Did you mean {near[0]}?" if near else self._one(ctx, args[0])
            raise click.UsageError(
                f"There is no command '{printable(args[0])}'.{hint} '{ctx.command_path} --help' lists them.", ctx
            )
        return super().resolve_command(ctx, args)

    def _one(self, ctx: click.Context, word: str) -> str:
        """`fleetcron runs 812`: who writes what he wants to see right behind the noun."""
        is_name = word.isascii() and word.replace("/", "").replace("-", "").replace(".", "").replace("_", "").isalnum()
        return f" To show one: {ctx.command_path} show {word}." if "show" in self._table and is_name else ""


def _offer_jobs(command: click.Command) -> None:
    """Arguments and options that are the name of a job are completed, wherever they stand: said here once, and not in
    each of the commands that have one."""
    from fleetcron.cli.completion import job_names

    is_of_jobs = (getattr(command.callback, "__module__", "") or "").rpartition(".")[2] in _ABOUT_JOBS
    for parameter in command.params:
        if parameter.name == "job" or (parameter.name in ("name", "names") and is_of_jobs):
            parameter._custom_shell_complete = job_names  # what `shell_complete=` would have set
