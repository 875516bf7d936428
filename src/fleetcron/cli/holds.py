"""`fleetcron hold`, `slow`, `release` and `holds`: what people switch in an incident, and how they undo it. S3-105."""

from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database, database_options
from fleetcron.cli.limits import done, mistakes_as_flags, say_looked, unknown
from fleetcron.cli.moments import shown, utc
from fleetcron.cli.names import by_option
from fleetcron.cli.tables import coloured, printable, table
from fleetcron.cli.watching import watchable
from fleetcron.cli.when import json_option, print_json
from fleetcron.client.errors import Conflict
from fleetcron.errors import RefusedError
from fleetcron.model.control import ALL, SCOPES, Scope, Wish
from fleetcron.store.store import Store
from fleetcron.store.written import Refused
from fleetcron.times.durations import duration_ms
from fleetcron.views.fleet import changed_json, hold_json

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

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
    "--percent", default=0, show_default=True, type=int, help="Let this share of the jobs go on nevertheless."
)
@by_option
@database_options
@json_option
def hold(
    database: Database, scope: Scope, name: str, reason: str, lasts: str | None, percent: int, by: str, as_json: bool
) -> None:
    """Let nothing of a tenant, a pool or a type start. What runs goes on, and ticks are planned: their runs wait."""
    wish = Wish(scope, name, percent, for_ms=_ms(lasts), reason=reason)
    changed = _switched(database, wish, lasts, by)
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
    changed = _switched(database, wish, lasts, by)
    _say(scope, name, changed, as_json, f"Undo it: {_command('release', scope, name)}")


@click.command("release")
@_scope
@_name
@click.option("--percent", type=int, help="Let only this share of the jobs go on for now. [default: all]")
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

    if percent is not None:
        changed = _switched(database, Wish(scope, name, percent, reason=reason, keeps_end=True), None, by)
    else:
        changed = _released(database, scope, name, reason, by)
    after = changed["after"]
    step = "The next step" if after and after["percent"] < ALL else "Let its retries go on too"
    _say(scope, name, changed, as_json, f"{step}: {_command('release', scope, name)}" if after else None)


@click.command("holds")
@watchable
@database_options
@json_option
def holds(database: Database, as_json: bool) -> None:
    """List what is held or slowed down now, why, by whom and until when."""
    found = database.ask(_of_store, lambda client: client.holds.list()["holds"])
    if as_json:
        print_json({"holds": found})
    elif found:
        heads = ("WHAT", "STARTS", "ATTEMPTS", "BACKOFF", "UNTIL", "WAITING", "BY", "REASON")
        click.echo(table(heads, [_row(line) for line in found]))
    else:
        click.echo("Nothing is held and nothing is slowed down.")


async def _of_store(store: Store) -> Sequence[Doc]:
    return [hold_json(line) for line in (await store.controls.list()).controls]


def _switched(database: Database, wish: Wish, lasts: str | None, by: str) -> Doc:
    with mistakes_as_flags():
        wish.check()

    async def of_store(store: Store) -> Doc:
        await _known(store, wish.scope, wish.name)
        written = await store.controls.switch(wish, actor=by)
        if isinstance(written, Refused):
            raise _nothing_held(wish, written.reason)
        return {"scope": wish.scope, "name": wish.name, **changed_json(done(written))}

    def of_api(client: "Client") -> Doc:
        try:
            return client.holds.switch(
                wish.scope,
                wish.name,
                wish.reason,
                percent=wish.percent,
                attempts=wish.attempts,
                backoff=wish.backoff,
                lasts=lasts,
                keeps_end=wish.keeps_end,
            )
        except Conflict as error:
            raise _nothing_held(wish, error.detail) from None

    return database.ask(of_store, of_api)


def _nothing_held(wish: Wish, why: str) -> RefusedError:
    return RefusedError(
        f"{why}, so there is nothing to go on with; to let only a part start:"
        f" {_command('hold', wish.scope, wish.name)} --percent {wish.percent} --reason ..."
    )


def _released(database: Database, scope: Scope, name: str, reason: str | None, by: str) -> Doc:
    async def of_store(store: Store) -> Doc:
        await _known(store, scope, name)
        with mistakes_as_flags():
            changed = done(await store.controls.release(scope, name, actor=by, reason=reason))
        return {"scope": scope, "name": name, **changed_json(changed)}

    return database.ask(of_store, lambda client: client.holds.release(scope, name, reason=reason))


async def _known(store: Store, scope: Scope, name: str) -> None:
    names = await store.controls.names(scope)
    if name not in names:
        raise unknown(scope, name, names, f"no job is of this {scope}")


def _ms(lasts: str | None) -> int | None:
    return None if lasts is None else duration_ms(lasts, "--for")


def _command(verb: str, scope: Scope, name: str) -> str:
    return f"fleetcron {verb} {scope} {quote(name)}"


def _say(scope: Scope, name: str, changed: Doc, as_json: bool, more: str | None) -> None:
    if as_json:
        print_json(changed)
        return
    before, after = changed["before"], changed["after"]
    word = "unchanged" if changed["done"] == "unchanged" else "changed" if after else "released"
    said = f": {_words(after)}" if after else " (it was neither held nor slowed down)" if before is None else ""
    click.echo(f"{scope} {name}: {coloured(word)}{said}.")
    if more and changed["done"] != "unchanged":
        click.echo(more)
    say_looked(changed, after["percent"] if after else ALL)


def _words(hold: Doc) -> str:
    """`nothing starts, 1 attempt at most, delays x4, until 2027-01-15T10:00:00Z`."""
    said = [_starts(hold["percent"])] if hold["percent"] < ALL else []
    if (attempts := hold["attempts"]) is not None:
        said.append(f"{attempts} attempt{'' if attempts == 1 else 's'} at most")
    if hold["backoff"] > 1:
        said.append(f"delays x{hold['backoff']:g}")
    said.append("until it is released" if hold["until_ms"] is None else f"until {utc(hold['until_ms'])}")
    return ", ".join(said)


def _starts(percent: int) -> str:
    return "nothing starts" if percent == 0 else f"{percent} % of the jobs may start"


def _row(hold: Doc) -> list[str]:
    percent = hold["percent"]
    return [
        printable(f"{hold['scope']} {hold['name']}"),
        "" if percent == ALL else f"{percent} %" if percent else coloured("paused", text="none"),
        "" if hold["attempts"] is None else f"max {hold['attempts']}",
        "" if hold["backoff"] == 1 else f"x{hold['backoff']:g}",
        shown(hold["until"]) or "it is released",
        f"{hold['waiting']:,}",
        printable(hold["by"]),
        printable(hold["reason"]),
    ]
