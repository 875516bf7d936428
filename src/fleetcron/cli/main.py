"""The list of commands. A command's module is imported only when it runs, so that every command starts fast."""

import os
import sys
from importlib import import_module

import click

from fleetcron import __version__
from fleetcron.errors import FleetcronError, ScheduleError

# name -> (module, one line for --help)
COMMANDS = {
    "next": ("fleetcron.cli.next", "Show the next ticks of a schedule."),
    "explain": ("fleetcron.cli.explain", "Say in words what a schedule does, and what clock changes do to it."),
    "lint": ("fleetcron.cli.lint", "Find what is allowed in a schedule but probably not meant."),
    "diff": ("fleetcron.cli.diff", "Compare two schedules: which ticks appear, vanish or move."),
    "demo": ("fleetcron.cli.demo", "Show the tick calculator at work."),
}


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        # the help of each command stands here too, so that listing them imports none of them
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"There is no command '{args[0]}'.{hint} 'fleetcron --help' lists them.", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="fleetcron")
def root() -> None:
    """fleetcron: a distributed cron and job scheduler.

    Exit codes: 0 fine, 1 findings or differences, 2 bad input.
    """


def main() -> None:
    """Run a command; a mistake of the user is a message and exit code 2, never a traceback."""
    colour = False if os.environ.get("NO_COLOR") else None
    try:
        root(color=colour)
    except ScheduleError as error:
        print_error(error, colour)
        sys.exit(2)
    except FleetcronError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except OSError as error:  # the output cannot be written: a full disk, say
        click.echo(f"error: {error}", err=True)
        sys.exit(2)


def print_error(error: ScheduleError, colour: bool | None) -> None:
    lines = [f"{click.style('error', fg='red', bold=True)}: {error.mistake}"]
    if pointer := error.pointer():
        lines += [f"  {line}" for line in pointer.splitlines()]
    if error.hint:
        lines.append(f"{click.style('hint', fg='cyan')}: {error.hint}")
    click.echo("\n".join(lines), err=True, color=colour)
