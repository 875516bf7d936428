"""`fleetcron hold`, `slow`, `release` and `holds`: what people switch in an incident, and how they undo it. S3-105."""

from shlex import quote

import click

from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.limits import done, mistakes_as_flags, say_looked, unknown
from fleetcron.cli.moments import utc
from fleetcron.cli.names import by_option
from fleetcron.cli.tables import coloured, printable, table
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.errors import RefusedError
from fleetcron.model.control import ALL, SCOPES, Scope, Switched, Wish
from fleetcron.model.queued import Control
from fleetcron.store.controls import ControlLine
from fleetcron.store.looking import Changed
from fleetcron.store.store import Store
from fleetcron.store.written import Refused
from fleetcron.times.durations import duration_ms
from fleetcron.views.fleet import changed_json, hold_json

_scope = click.argument("scope", type=click.Choice(SCOPES))
_name = click.argument("name")
_reason = click.option("--reason", required=True, metavar="TEXT", help="Why: the others read it too.")
_for = click.option("--for", "lasts", metavar="DURATION", help="It ends by itself after this. [default: never]")


@click.command("hold")
@_scope
@_name
@_reason
@_for
@click.option(
    "--percent", default=0, show_default=True, type=int, help="Let this share of the runs start nevertheless."
)
@by_option
@database_options
@json_option
def hold(
    database: Database, scope: Scope, name: str, reason: str, lasts: str | None, percent: int, by: str, as_json: bool
) -> None:
    """Let nothing of a tenant, a pool or a type start. What runs goes on, and ticks are planned: their runs wait."""
    wish = Wish(scope, name, percent, for_ms=_ms(lasts), reason=reason)
    changed = database.run(lambda store: _switch(store, wish, by))
    _say(scope, name, changed, as_json, f"Undo it: {_command('release', scope, name)}, at once or with --percent 25")


@click.command("slow")
@click.argument("scope", type=click.Choice(("tenant", "type")))
@_name
@click.option("--attempts", type=int, metavar="N", help="So many attempts of a run at most; 1: no retries.")
@click.option("--backoff", type=float, metavar="FACTOR", help="Delays before retries are so many times longer.")
@_reason
@_for
@by_option
@database_options
@json_option
def slow(
    database: Database,
    scope: Scope,
    name: str,
    attempts: int | None,
    backoff: float | None,
    reason: str,
    lasts: str | None,
    by: str,
    as_json: bool,
) -> None:
    """Retry a tenant or a type less: fewer attempts, longer delays. It holds for attempts that end from now on."""
    if attempts is None and backoff is None:
        raise click.UsageError("Say how: --attempts N, --backoff FACTOR, or both.")
    wish = Wish(scope, name, attempts=attempts, backoff=backoff, for_ms=_ms(lasts), reason=reason)
    changed = database.run(lambda store: _switch(store, wish, by))
    _say(scope, name, changed, as_json, f"Undo it: {_command('release', scope, name)}")


@click.command("release")
@_scope
@_name
@click.option("--percent", type=int, help="Let only this share of the runs start for now. [default: all]")
@click.option("--reason", metavar="TEXT", help="What was done about it.")
@by_option
@database_options
@json_option
def release(
    database: Database, scope: Scope, name: str, percent: int | None, reason: str | None, by: str, as_json: bool
) -> None:
    """Let a tenant, a pool or a type go on: all of it, or by and by with --percent 25, 50, 75.

    Without --percent everything ends that was switched for it, also what `slow` did; --percent 100 keeps that.
    """

    async def work(store: Store) -> Changed[Switched]:
        if percent is not None:
            return await _switch(store, Wish(scope, name, percent, reason=reason, keeps_end=True), by)
        await _known(store, scope, name)
        with mistakes_as_flags():
            return done(await store.controls.release(scope, name, actor=by, reason=reason))

    changed = database.run(work)
    after = changed.after
    step = "The next step" if after and after.control.percent < ALL else "Let its retries go on too"
    _say(scope, name, changed, as_json, f"{step}: {_command('release', scope, name)}" if after else None)


@click.command("holds")
@watchable
@database_options
@json_option
def holds(database: Database, as_json: bool) -> None:
    """List what is held or slowed down now, why, by whom and until when."""
    found = database.run(lambda store: store.controls.list())
    if as_json:
        print_json({"holds": [hold_json(line) for line in found.controls]})
    elif found.controls:
        heads = ("WHAT", "STARTS", "ATTEMPTS", "BACKOFF", "UNTIL", "WAITING", "BY", "REASON")
        click.echo(table(heads, [_row(line) for line in found.controls]))
    else:
        click.echo("Nothing is held and nothing is slowed down.")


async def _switch(store: Store, wish: Wish, by: str) -> Changed[Switched]:
    with mistakes_as_flags():
        wish.check()
    await _known(store, wish.scope, wish.name)
    written = await store.controls.switch(wish, actor=by)
    if isinstance(written, Refused):
        raise RefusedError(
            f"{written.reason}, so there is nothing to go on with; to let only a part start:"
            f" {_command('hold', wish.scope, wish.name)} --percent {wish.percent} --reason ..."
        )
    return done(written)


async def _known(store: Store, scope: Scope, name: str) -> None:
    names = await store.controls.names(scope)
    if name not in names:
        raise unknown(scope, name, names, f"no job is of this {scope}")


def _ms(lasts: str | None) -> int | None:
    return None if lasts is None else duration_ms(lasts, "--for")


def _command(verb: str, scope: Scope, name: str) -> str:
    return f"fleetcron {verb} {scope} {quote(name)}"


def _say(scope: Scope, name: str, changed: Changed[Switched], as_json: bool, more: str | None) -> None:
    if as_json:
        print_json({"scope": scope, "name": name, **changed_json(changed)})
        return
    after = changed.after
    word = "unchanged" if changed.before == after else "changed" if after else "released"
    said = (
        f": {_words(after.control)}"
        if after
        else " (it was neither held nor slowed down)"
        if changed.before is None
        else ""
    )
    click.echo(f"{scope} {name}: {coloured(word)}{said}.")
    if more and changed.before != after:
        click.echo(more)
    say_looked(changed)


def _words(control: Control) -> str:
    """`nothing starts, 1 attempt at most, delays x4, until 2027-01-15T10:00:00Z`."""
    said = [_starts(control.percent)] if control.percent < ALL else []
    if control.retries is not None:
        said.append(f"{control.retries} attempt{'' if control.retries == 1 else 's'} at most")
    if control.backoff > 1:
        said.append(f"delays x{control.backoff:g}")
    said.append("until it is released" if control.until_ms is None else f"until {utc(control.until_ms)}")
    return ", ".join(said)


def _starts(percent: int) -> str:
    return "nothing starts" if percent == 0 else f"{percent} % of the runs may start"


def _row(line: ControlLine) -> list[str]:
    control = line.switched.control
    return [
        printable(f"{control.scope} {control.name}"),
        ""
        if control.percent == ALL
        else coloured("paused", text="none")
        if not control.percent
        else f"{control.percent} %",
        "" if control.retries is None else f"max {control.retries}",
        "" if control.backoff == 1 else f"x{control.backoff:g}",
        "it is released" if control.until_ms is None else utc(control.until_ms),
        f"{line.waiting:,}",
        printable(line.switched.actor),
        printable(line.switched.reason),
    ]
