"""What the commands about tenants, pools and holds share: limits as they are written, and what became of a change."""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from fleetcron.cli.asking import Doc
from fleetcron.cli.connection import Database
from fleetcron.cli.tables import coloured, numbered, printable
from fleetcron.cli.when import print_json
from fleetcron.client.errors import Refused as Mistaken
from fleetcron.errors import DefinitionError, Mistake, RefusedError, StoreUnavailable
from fleetcron.model.control import ALL
from fleetcron.store.looking import Changed
from fleetcron.store.store import Store
from fleetcron.store.written import Ok, Refused, Unknown, Written
from fleetcron.views.fleet import Limited, changed_json

if TYPE_CHECKING:
    from fleetcron.client.blocking import Client

T = TypeVar("T")
L = TypeVar("L", bound=Limited)

NONE: Final = "none"
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_SLOT: Final = "slot"
WAITS: Final[Mapping[str, str]] = {
    _SLOT: "for a slot",
    "key": "overlap",
    "upstream": "upstream",
    "tenant": "max_in_flight",
    "rate": "rate",
    "quota_tenant": "per_tenant",
    "quota_type": "per_type",
    "paused": "held",
    "handler": "handler",
}


def figure(_context: click.Context, _option: click.Parameter, value: str | None) -> int | None:
    """A whole number. Its range is checked with everything else, so that all mistakes are told at once."""
    if value is None or _WHOLE.fullmatch(value):
        return None if value is None else int(value)
    raise click.BadParameter(f"'{value}' is not a whole number")


def figure_or_none(context: click.Context, option: click.Parameter, value: str | None) -> int | str | None:
    """The same, or `none` for no limit."""
    return NONE if value == NONE else figure(context, option, value)


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were said. `none` takes a limit away."""
    said = {field: None if value == NONE else value for field, value in options.items() if value is not None}
    if not said:
        flags = ", ".join(_flag(field) for field in options)
        raise click.UsageError(f"Say what to set: {flags}.")
    return said


@contextmanager
def mistakes_as_flags(named: str = "NAME") -> Iterator[None]:
    """Tell mistakes by the options that were written."""
    try:
        yield
    except (DefinitionError, Mistaken) as error:
        if not error.mistakes:
            raise
        raise DefinitionError(
            [
                Mistake(named if each.pointer == "/name" else _flag(each.pointer.strip("/")), each.message, each.hint)
                for each in error.mistakes
            ]
        ) from None


def _flag(field: str) -> str:
    name, _, rest = field.partition("/")
    return f"--{name.replace('_', '-')}{f' {rest}' if rest else ''}"


def done(written: Written[T]) -> T:
    match written:
        case Ok(value):
            return value
        case Refused(reason):
            raise RefusedError(reason)
        case Unknown(why):
            raise StoreUnavailable(f"it is not known whether that was written ({why})", hint="run it again")


def change(
    database: Database,
    plain: L,
    verb: Callable[[Store], Awaitable[Written[Changed[L]]]],
    ask: "Callable[[Client], Doc]",
    as_json: bool,
    count: Callable[[Store], Awaitable[int]] | None = None,
    count_there: "Callable[[Client], int] | None" = None,
) -> None:
    """Set or reset the limits of a tenant or a pool, and say what became of it. `plain` is one without limits; `count`
    are the jobs it has: limits may come first, but a typing error looks the same."""

    async def of_store(store: Store) -> Doc:
        told = {"name": plain.name, **changed_json(done(await verb(store)))}
        return told if count is None else {**told, "jobs": await count(store)}

    def of_api(client: "Client") -> Doc:
        told = ask(client)
        return told if count_there is None else {**told, "jobs": count_there(client)}

    with mistakes_as_flags():
        changed = database.ask(of_store, of_api)
    if as_json:
        print_json(changed)
        return
    before, after = changed["before"] or plain.as_document(), changed["after"] or plain.as_document()
    if before == after:
        click.echo(f"{plain.name}: unchanged.")
    else:
        click.echo(f"{plain.name}: {coloured('changed')}: {printable(differences(before, after))}.")
    if changed.get("jobs") == 0:
        click.echo(f"No job has the {type(plain).__name__.lower()} {plain.name} yet.")
    say_looked(changed)


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """`weight 1 -> 3, rate none -> 10/s`."""
    return ", ".join(
        f"{field} {_word(before.get(field))} -> {_word(value)}"
        for field, value in after.items()
        if before.get(field) != value
    )


def _word(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={each}" for key, each in value.items()) or NONE
    return NONE if value is None else str(value)


def say_looked(changed: Doc, percent: int = ALL) -> None:
    """`percent`: only this share of them may start; which ones, the next claims say."""
    looked = changed["looked_at"]
    if looked and percent < ALL:
        are = "is" if looked == 1 else "are"
        click.echo(f"{numbered(looked, 'run')} that waited {are} looked at again: {percent} % may start.")
    elif looked:
        click.echo(f"{numbered(looked, 'run')} that waited may start, if nothing else holds them back.")
    if not changed["complete"]:
        click.echo("More runs wait, and the database went away meanwhile: run it again.", err=True)


def used(count: int, limit: int | None) -> str:
    """12, or 12/100 where there is a limit."""
    return f"{count:,}" if limit is None else f"{count:,}/{limit:,}"


def waiting(usage: Doc) -> str:
    """`120 (100 max_in_flight, 20 held)`; what only waits for a slot needs no words."""
    if not usage["queued"]:
        return ""
    gates = sorted(usage["waiting"].items(), key=lambda each: -each[1])
    if [gate for gate, _ in gates] == [_SLOT]:
        return f"{usage['queued']:,}"
    return f"{usage['queued']:,} ({', '.join(f'{count:,} {WAITS.get(gate, gate)}' for gate, count in gates)})"


def unknown(noun: str, name: str, known: Sequence[str], more: str) -> RefusedError:
    """In an incident a typing error must not look like success."""
    near = get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else more
    return RefusedError(f"there is no {noun} {name}; {hint}")
